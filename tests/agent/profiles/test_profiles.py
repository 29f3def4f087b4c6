"""Prompt profiles: their files, which model gets which, and what a run records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import LlamaForCausalLM

from agent.config import RunConfig, parse_config
from agent.episode.policy import ScriptedPolicy
from agent.episode.profile_prompts import profile_of_messages, render_prompt
from agent.profiles.profile import named, profile_of_spec, profiles, read_profile, size_in_billions
from agent.run import runner
from agent.run.components import open_components
from agent.run.prompt_profiles import profile_of, with_profile
from agent.run.run_store import Manifest
from envs.core.action_languages import PROGRAM
from envs.core.action_languages.form_language import TO_DO
from envs.core.actions import Click, Stop
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection
from models.local.declarations import declaration, declare_style
from models.local.parameter_count import count_parameters
from tests.agent.episode.test_prompts import VIEW
from tests.mira_command import mira
from tests.models.local.gguf_files import write_gguf
from tests.models.local.test_local import save_checkpoint

QWEN = "openai:qwen2.5-coder-1.5b-instruct"


def test_every_profile_file_is_valid() -> None:
    assert list(profiles()) == ["compact", "large", "small"]
    for name, profile in profiles().items():
        assert profile.name == name and profile.about and (profile.models or profile.up_to_billions)
    assert named("large").examples == () and not named("large").is_short


def test_examples_end_the_task_where_constrained_answers_may() -> None:
    profile = named("small")
    steps = [step for each in profile.examples for variant in each.variants for step in variant.steps]
    assert {type(step.action) for step in steps} >= {Click, Stop}
    for step in steps:
        to_do = step.thought.partition(TO_DO)[2]
        assert to_do and to_do.startswith(profile.endings) is isinstance(step.action, Stop)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('style = "tiny"', "key 'style'"),
        ('style = "full"\nhistory_lines = 3', "history_lines need"),
        ('style = "compact"\nrules = "short"\npage_first = true', "page_first need"),
        ('style = "full"\nprompt = 1', "unknown key 'prompt'"),
        (
            'style = "full"\nrules = "short"\n[[examples]]\nkind = "x"\n[[examples.variants]]\ngoal = "g"\n'
            '[[examples.variants.steps]]\npage = ["[#1] link \\"a\\""]\nthought = "t"\n'
            'action = { kind = "click", ref = 2 }',
            "an action names control 2",
        ),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'about = "mine"\n{text}\n', encoding="utf-8")
    with pytest.raises(BadInput, match=problem) as caught:
        read_profile(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "profile"),
    [
        ("embedded", "compact"),
        (QWEN, "small"),
        ("openai:qwen2.5-coder:0.5b", "small"),
        ("openai:llama3.2:3b", "small"),
        ("openai:smollm2", "small"),
        ("openai:llama3.2", "small"),
        ("litellm:ollama/llama3.2:latest", "small"),
        ("openai:llama3.2-vision", "large"),
        ("openai:llama3.2:90b", "large"),
        ("openai:gemma3", "small"),
        ("openai:gemma3:27b-it-qat", "large"),
        ("vllm:http://127.0.0.1:8000/v1#google/gemma-3-12b-it", "large"),
        ("openai:phi3", "small"),
        ("openai:phi3:medium", "large"),
        ("openai:phi3.5:latest", "small"),
        ("openai:phi4", "large"),
        ("openai:phi4-mini", "small"),
        ("vllm:http://127.0.0.1:8000/v1#HuggingFaceTB/SmolVLM-Instruct", "small"),
        ("vllm:http://127.0.0.1:8000/v1#smolagents/Smol2Operator", "small"),
        ("vllm:http://127.0.0.1:8000/v1#Qwen/Qwen3-4B", "small"),
        ("vllm:http://127.0.0.1:8000/v1#Qwen/Qwen3-30B-A3B", "large"),
        ("local:/models/qwen2.5-coder-0.5b.gguf", "small"),
        ("local:/models/smollm-360m/checkpoint-100", "small"),
        ("local:/models/checkpoint-100", "large"),
        ("gemini:gemini-1.5-flash-8b", "large"),
        ("gemini:gemini-2.5-pro", "large"),
        ("openai:gpt-4o-mini", "large"),
        ("openai:gpt-oss-20b", "large"),
    ],
)
def test_auto_chooses_by_the_name_of_the_model(spec: str, profile: str) -> None:
    assert profile_of_spec(spec).name == profile


@pytest.mark.parametrize("kind", ["safetensors", "shards", "gguf"])
def test_the_parameters_of_a_local_model_without_a_size_in_its_name_are_counted(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    if kind == "gguf":
        model = write_gguf(folder / "mine.gguf", kind="F32")
        expected = sum(tensor.numel() for tensor in model.parameters())
    else:
        save_checkpoint(folder)
        model = LlamaForCausalLM.from_pretrained(folder)
        expected = sum(tensor.numel() for tensor in model.parameters())
    if kind == "shards":
        (folder / "model.safetensors").unlink()
        model.save_pretrained(folder, max_shard_size="20KB")
        assert not (folder / "model.safetensors").exists()
    assert count_parameters(folder) == expected
    assert profile_of_spec(f"local:{folder}").name == "small"
    folder.rename(tmp_path / "mine-7b")
    assert profile_of_spec(f"local:{tmp_path / 'mine-7b'}").name == "large", "its name says how many"


def test_a_large_local_model_gets_the_large_prompt(tmp_path: Path) -> None:
    """Also where the parameters cannot be counted: quantized weights are packed, a damaged file says nothing."""
    header = json.dumps({"w": {"dtype": "BF16", "shape": [70_000, 100_000], "data_offsets": [0, 0]}}).encode()
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    assert count_parameters(tmp_path) == 7_000_000_000
    assert profile_of_spec(f"local:{tmp_path}").name == "large"
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 12)
    assert count_parameters(tmp_path) is None
    save_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text('{"quantization_config": {}}')
    assert count_parameters(tmp_path) is None


def test_a_declared_style_decides_before_the_name(tmp_path: Path) -> None:
    folder = tmp_path / "qwen-0.5b"
    folder.mkdir()
    assert profile_of_spec(f"local:{folder}").name == "small"
    declare_style(folder, "compact")
    assert profile_of_spec(f"local:{folder}").name == "compact"
    declare_style(folder, "full")
    assert profile_of_spec(f"local:{folder}").name == "large", "trained on the prompts of large models"


def test_a_checkpoint_that_is_trained_on_short_prompts_is_asked_by_their_profile(tmp_path: Path) -> None:
    for name in profiles():
        messages = [(message.role, message.text) for message in render_prompt(named(name), VIEW)]
        declare_style(tmp_path, named(name).style, profile_of_messages(messages))
        assert profile_of_spec(f"local:{tmp_path}").name == name
    assert declaration(tmp_path) == ("full", "small")
    declare_style(tmp_path, "full", "of a later version")
    with pytest.raises(BadInput, match="unknown prompt profile 'of a later version'"):
        profile_of_spec(f"local:{tmp_path}")


@pytest.mark.parametrize(
    ("name", "billions"),
    [("qwen-0.5b", 0.5), ("smollm-360m", 0.36), ("x-30b-a3b", 30), ("gpt-4o", None), ("v2b1", None)],
)
def test_the_size_of_a_model_is_read_from_its_name(name: str, billions: float | None) -> None:
    assert size_in_billions(name) == billions


def test_a_run_records_its_profile_and_the_settings_of_it() -> None:
    chosen = with_profile(RunConfig(policy=QWEN), "miniwob")
    assert (chosen.profile, chosen.max_actions_per_turn, chosen.max_notes) == ("small", 1, 0)
    set_by_hand = with_profile(RunConfig(policy=QWEN, max_notes=5), "miniwob")
    assert (set_by_hand.max_actions_per_turn, set_by_hand.max_notes) == (1, 5)
    stored = RunConfig.model_validate_json(chosen.model_dump_json())
    assert with_profile(stored, "miniwob") == stored, "it is kept when a run is continued"
    assert with_profile(RunConfig(policy="openai:gpt-4o"), "miniwob") == RunConfig(
        policy="openai:gpt-4o", profile="large"
    )


async def test_run_json_and_headers_hold_the_chosen_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers of traces hold the manifest's configuration."""
    begun: list[Manifest] = []

    async def begin(manifest: Manifest, *_: object, **__: object) -> None:
        begun.append(manifest)

    monkeypatch.setattr(runner, "_run", begin)
    config, selection = RunConfig(policy=QWEN), TaskSelection("miniwob", ("click-button",), (0,))
    await runner.run_suite(config, selection, tmp_path)
    await runner.run_open(config, "Buy tea", "http://127.0.0.1:9/", tmp_path)
    await runner.run_suite(config, selection, tmp_path, policy=ScriptedPolicy([], PROGRAM))
    assert [one.config.profile for one in begun] == ["small", "small", "auto"], "a policy from Python has its own"


@pytest.mark.parametrize(
    ("settings", "profile"),
    [
        ({"policy": QWEN}, "large"),
        ({"policy": QWEN, "prompt_style": "compact"}, "compact"),
        ({"policy": "embedded"}, "compact"),
        ({"policy": "oracle"}, "compact"),
        ({"policy": "oracle", "prompt_style": "full"}, "large"),
    ],
)
def test_a_run_of_an_older_version_keeps_its_prompts(settings: dict[str, str], profile: str) -> None:
    values = RunConfig().resolved() | settings
    del values["profile"]
    stored = RunConfig.model_validate_json(json.dumps(values))
    assert profile_of(stored, "miniwob").name == profile


@pytest.mark.parametrize(
    ("values", "profile"),
    [
        ({"prompt_style": "full"}, "large"),
        ({"prompt_style": "compact"}, "compact"),
        ({"prompt_style": "auto"}, "auto"),
        ({"prompt_style": "compact", "profile": "auto"}, "compact"),
        ({"prompt_style": "compact", "profile": "small"}, "small"),
    ],
)
def test_a_prompt_style_of_an_older_version_is_a_profile(values: dict[str, str], profile: str) -> None:
    assert RunConfig.model_validate({"policy": QWEN, **values}).profile == profile


@pytest.mark.parametrize("style", ["short", ["full"]])
def test_an_unknown_prompt_style_is_refused(style: object) -> None:
    with pytest.raises(BadInput, match="profile"):
        parse_config({"prompt_style": style})


async def test_the_policy_of_a_run_is_asked_by_its_profile() -> None:
    config = RunConfig(policy=QWEN, base_url="http://127.0.0.1:9/v1", planner="none", judge="none", profile="small")
    async with open_components(with_profile(config, "miniwob"), "miniwob") as parts:
        policy = vars(parts.policy)
    assert (policy["_profile"].name, policy["max_actions"], policy["rationale_chars"]) == ("small", 1, 120)


@pytest.mark.parametrize(("judge", "exact"), [("state", True), ("none", False), ("same", False)])
async def test_only_checked_milestones_begin_the_thoughts_of_small_models(judge: str, exact: bool) -> None:
    values = {"policy": QWEN, "base_url": "http://127.0.0.1:9/v1", "planner": "none", "judge": judge}
    config = RunConfig.model_validate(values)
    async with open_components(with_profile(config, "miniwob"), "miniwob") as parts:
        assert vars(parts.policy)["exact_ratings"] is exact


def test_mira_models_shows_the_profile_of_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, "models", QWEN, "openai:gpt-4o", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(row["spec"], row["profile"]) for row in shown] == [(QWEN, "small"), ("openai:gpt-4o", "large")]
    assert [(row["vision"], row["constrained"]) for row in shown] == [("general", "on, with a base URL")] * 2
    assert mira(monkeypatch, "models") == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name} " in listed for name in profiles())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("embedded", ("compact", None, "never")),
        ("local:/models/qwen2.5-coder-0.5b.gguf", ("small", None, "auto")),
        ("vllm:http://127.0.0.1:8000/v1#Qwen/Qwen3-VL-8B-Instruct", ("large", "qwen3-vl", "on")),
        ("vllm:http://127.0.0.1:8000/v1#openai/gpt-oss-20b", ("large", "general", "never")),
        ("anthropic:claude-opus-5", ("large", "claude", "never")),
        ("anthropic-browser:claude-opus-5", (None, None, "never")),
        ("anthropic-computer:claude-opus-5", (None, None, "never")),
        ("openai-computer:gpt-5.4", (None, None, "never")),
        ("oracle", (None, None, "never")),
        ("oracle:detours", (None, None, "never")),
    ],
)
def test_mira_models_shows_what_a_run_chooses(
    spec: str,
    expected: tuple[str | None, str | None, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert mira(monkeypatch, "models", spec, "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["spec"], (row["profile"], row["vision"], row["constrained"])) == (spec, expected)
    assert mira(monkeypatch, "models", spec, "--wide") == 0
    shown = capsys.readouterr().out
    assert ("vendor's tools" in shown) is (expected[0] is None and "oracle" not in spec)


def test_mira_models_lists_the_oracle(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert mira(monkeypatch, "models", "--json") == 0
    rows = {row["spec"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["oracle"]["usable"] and rows["oracle"]["examples"] == ["oracle", "oracle:detours"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["run", "--suite", "miniwob", "--profile", "nope"], "unknown prompt profile: use one of auto, compact, large"),
        (["models", "nope:x"], "unknown model 'nope:x'"),
    ],
)
def test_an_unknown_name_is_one_line_and_exit_code_2(
    arguments: list[str], problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mira(monkeypatch, *arguments) == 2
    written = capsys.readouterr()
    assert problem in written.err and written.err.count("\n") == 1 and written.out == ""
