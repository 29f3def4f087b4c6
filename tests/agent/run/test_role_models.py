"""The server of each role: its own, that of the role whose model it shares, or the run's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agent.cli.options import build_config
from agent.cli.role_options import base_urls
from agent.config import ROLES, RunConfig, load_config, parse_config
from agent.run.components import open_components
from agent.run.role_models import (
    base_url_of,
    check_base_urls,
    check_changed_servers,
    check_constrained,
    check_shared_base_url,
)
from agent.run.run_store import RunFolder
from agent.run.runner import resume, run_task
from envs.core.errors import BadInput
from envs.core.trace import Footer, Totals
from envs.core.trace_store import BlobStore, TraceWriter
from models.base import ChatModel
from models.provider import ModelOptions
from models.specs import parse_spec
from models.transport import RetryPolicy
from tests.agent.episodes import Play, write_run
from tests.agent.mira_process import run_mira
from tests.agent.roles import Roles, role_of
from tests.agent.shop import Shop
from tests.mira_command import mira
from tests.models.providers.servers import misbehaving_server

A, B, C = (f"http://127.0.0.1:{port}/v1" for port in (1, 2, 3))
NAMED = {"policy": "openai:p", "planner": "openai:q", "judge": "openai:j", "grounder": "openai:g"}
SAME = {"policy": "openai:p", "planner": "same", "judge": "same", "grounder": "same"}


def servers(values: dict[str, Any]) -> list[str | None]:
    config = parse_config(values)
    return [base_url_of(config, role) for role in ROLES]


def test_the_roles() -> None:
    assert ROLES == ("policy", "planner", "rater", "judge", "grounder"), "the order of the lists below"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(NAMED, [None] * 5, id="the provider's own"),
        pytest.param({**NAMED, "base_url": A}, [A] * 5, id="one for all"),
        pytest.param({**NAMED, "policy_base_url": B}, [B, None, None, None, None], id="of named models each its own"),
        pytest.param({**NAMED, "base_url": A, "grounder_base_url": B}, [A, A, A, A, B], id="one for all but one"),
        pytest.param({**NAMED, "judge_base_url": B}, [None, None, B, B, None], id="the judge rates, too"),
        pytest.param(
            {**NAMED, "rater": "openai:r", "judge_base_url": B, "rater_base_url": C},
            [None, None, C, B, None],
            id="a rater of its own",
        ),
        pytest.param({**SAME, "policy_base_url": B}, [B] * 5, id="a shared model has one server"),
        pytest.param(
            {**SAME, "policy_base_url": B, "planner_base_url": C, "rater_base_url": A},
            [B, C, A, C, B],
            id="the same weights on several servers",
        ),
        pytest.param(
            {**SAME, "planner": "none", "rater": "same", "policy_base_url": B},
            [B, None, B, B, B],
            id="without a planner",
        ),
    ],
)
def test_the_server_of_each_role(values: dict[str, Any], expected: list[str | None]) -> None:
    assert servers(values) == expected


async def test_roles_share_a_model_if_spec_and_server_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also: two protocols need two servers."""
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-a-test")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-a-test")
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    made: list[tuple[str, str | None]] = []
    from agent.run import components

    make = components.make_model

    def recorded(spec: str, *, base_url: str | None, policy: RetryPolicy) -> ChatModel:
        made.append((spec, base_url))
        return make(spec, base_url=base_url, policy=policy)

    monkeypatch.setattr(components, "make_model", recorded)
    mixed = {"policy": "openai:p", "planner": "openai:p", "judge": "anthropic:claude-opus-5"}
    apart = {**mixed, "base_url": A, "planner_base_url": B, "judge_base_url": C}
    async with open_components(parse_config(apart), "open"):
        assert made == [("openai:p", A), ("openai:p", B), ("anthropic:claude-opus-5", C)]
    says = f"--base-url {A} is one server, but anthropic:claude-opus-5 needs the Anthropic protocol and openai:p the"
    with pytest.raises(BadInput, match=says):
        async with open_components(parse_config({**mixed, "base_url": A}), "open"):
            pass


def test_base_urls_of_the_command_line() -> None:
    assert base_urls(None) == {}
    assert base_urls([A]) == {"base_url": A}
    assert base_urls([A, f"grounder={B}", f"grounder={C}"]) == {"base_url": A, "grounder_base_url": C}
    assert base_urls(["http://127.0.0.1:1/v1?key=a"]) == {"base_url": "http://127.0.0.1:1/v1?key=a"}
    assert base_urls(["judge=http://127.0.0.1:1/v1?key=a"]) == {"judge_base_url": "http://127.0.0.1:1/v1?key=a"}
    with pytest.raises(BadInput, match="'ponder' is not a role"):
        base_urls([f"ponder={A}"])


def test_a_server_for_all_replaces_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mira.toml"
    file.write_text(f'policy = "openai:p"\nbase_url = "{A}"\njudge_base_url = "{B}"\n')
    assert load_config(file).judge_base_url == B
    assert load_config(file, base_urls([f"policy={C}"])).judge_base_url == B
    assert load_config(file, base_urls([C])).judge_base_url is None


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"grounder_base_url": A}, "grounder without a model uses no base URL, here .*leave out --base-url grounder=…"),
        ({"planner": "reference", "planner_base_url": A}, "planner without a model uses no base URL"),
        ({"policy": "embedded", "policy_base_url": A}, "policy embedded uses no base URL"),
        ({"judge": "gemini:g", "judge_base_url": A}, "judge gemini:g uses no base URL, here"),
        ({"judge": "gemini:g", "judge_base_url": A}, "openai:MODEL, anthropic:MODEL or litellm:PROVIDER/MODEL$"),
    ],
)
def test_a_server_that_no_model_uses_is_refused(values: dict[str, Any], says: str) -> None:
    config = RunConfig.model_validate({"policy": "openai:p", "planner": "none", "judge": "none", **values})
    with pytest.raises(BadInput, match=says):
        check_base_urls(config)
    check_base_urls(config, config)


def test_a_server_of_a_judge_is_used_where_the_variable_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", B)
    check_base_urls(parse_config({"policy": "openai:p", "judge": "anthropic:c", "judge_base_url": A}))


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ({"policy": "embedded"}, "policy embedded, planner reference, judge state"),
        (
            {"policy": "oracle", "grounder": "gemini:g"},
            "policy oracle, planner reference, judge state, grounder gemini:g",
        ),
        ({"policy": "vllm:http://127.0.0.1:9/v1#m", "planner": "same"}, "planner same, judge state"),
        ({"policy": "openai:p", "policy_base_url": B}, f"policy openai:p at {B}, planner reference, judge state"),
    ],
)
def test_a_server_for_all_roles_that_no_model_uses_is_refused(values: dict[str, Any], parts: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_shared_base_url(parse_config({**values, "base_url": A}))
    assert str(refused.value).startswith(f"--base-url {A}: no model of this run uses it (policy ")
    assert f"{parts}): leave it out, or choose" in str(refused.value)
    assert str(refused.value).endswith("takes a server: openai:MODEL, anthropic:MODEL or litellm:PROVIDER/MODEL")


@pytest.mark.parametrize(
    "values",
    [
        {"policy": "openai:p"},
        {"policy": "embedded", "judge": "anthropic:c"},
        {"policy": "embedded", "rater": "litellm:mistral/m"},
        {"policy": "openai:p", "policy_base_url": B, "planner": "openai:q"},
        {"policy": "no-such:model"},
    ],
)
def test_a_server_for_all_roles_that_a_model_uses_is_taken(values: dict[str, Any]) -> None:
    """Also one for a wrong spec, which has an error of its own."""
    check_shared_base_url(parse_config({**values, "base_url": A}))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("analyze", "runs"), "uses it: leave it out, or choose a model that takes a server with --judge: "),
        (("analyze", "runs", "--judge", "gemini:g"), "uses it (gemini:g): leave"),
        (("eval", "texts", "e.jsonl", "--policy", "embedded"), "uses it (embedded): leave it out"),
        (("eval", "grids", "e.jsonl", "--predictions", "p.jsonl"), "no model of this command uses it: leave"),
        (("eval", "grounding", "e.jsonl", "--policy", "local:m"), "uses it (local:m)"),
        (("eval", "planning", "e.jsonl", "--policy", "local:m"), "uses it (local:m)"),
        (
            ("train", "adagui-data", "e.jsonl", "--policy", "local:m", "--judge", "embedded", "--out", "a.jsonl"),
            "uses it (local:m, embedded)",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_commands_refuse_a_server_that_no_model_uses(
    words: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("e.jsonl", "p.jsonl"):
        (tmp_path / name).write_text("{}\n")
    (tmp_path / "runs").mkdir()
    assert mira(monkeypatch, *words, "--base-url", A) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"mira: --base-url {A}: ") and says in error and error.count("\n") == 1


async def test_run_task_refuses_a_server_that_no_model_uses(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no model of this run uses it"):
        await run_task("x", "http://127.0.0.1:9/", policy="embedded", base_url=A, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "values",
    [
        {"policy": "openai:gpt-4o"},
        {"policy": "openai:gpt-oss:20b", "base_url": A},
        {"policy": "openai-computer:gpt-5.4", "base_url": A},
        {"policy": "vllm:http://127.0.0.1:8000/v1#openai/gpt-oss-20b"},
        {"policy": "anthropic:claude-opus-5", "base_url": A},
        {"policy": "anthropic-browser:claude-opus-5"},
        {"policy": "gemini:gemini-2.5-pro"},
        {"policy": "litellm:mistral/m"},
        {"policy": "embedded"},
    ],
    ids=lambda values: values["policy"],
)
def test_a_grammar_for_a_model_that_takes_none_is_refused(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    config = parse_config({**values, "constrained": "on"})
    with pytest.raises(BadInput, match=f"^policy {re.escape(values['policy'])} takes no grammar") as caught:
        check_constrained(config)
    assert "\n" not in str(caught.value)
    check_constrained(config, config)  # a recorded run is continued
    check_constrained(parse_config(values))


@pytest.mark.parametrize(
    "values",
    [
        {"policy": "openai:qwen2.5-coder-0.5b", "base_url": A},
        {"policy": "openai:qwen2.5-coder-0.5b", "policy_base_url": A},
        {"policy": "vllm:http://127.0.0.1:8000/v1#m"},
        {"policy": "local:m"},
        {"policy": "no-such:model"},
    ],
)
def test_a_grammar_for_a_model_that_may_take_one_is_accepted(values: dict[str, Any]) -> None:
    check_constrained(parse_config({**values, "constrained": "on"}))


def test_a_run_refuses_a_grammar_without_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("run", "--suite", "miniwob", "--tasks", "click-test", "--policy", "embedded", "--out", str(tmp_path / "r"))
    assert mira(monkeypatch, *words, "--constrained", "on") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("mira: policy embedded takes no grammar, so that --constrained on has no effect")
    assert not (tmp_path / "r").exists()


def test_the_specs_that_take_a_server() -> None:
    """Those that the messages above name."""
    specs = ("openai:m", "anthropic:m", "litellm:openai/m", "gemini:m", "vllm:http://h#m", "local:d", "embedded")
    taking = [spec for spec in specs if parse_spec(spec).base_url_protocol(ModelOptions(A))]
    assert taking == ["openai:m", "anthropic:m", "litellm:openai/m"]


def test_a_server_in_a_file_may_be_a_shared_default(tmp_path: Path) -> None:
    """The same as an option is refused."""
    file = tmp_path / "mira.toml"
    file.write_text(f'base_url = "{A}"\n')
    assert build_config(file, {"policy": "embedded"}).base_url == A
    for path in (file, None):
        with pytest.raises(BadInput, match=f"^--base-url {B}: no model of this run uses it"):
            build_config(path, {"policy": "embedded", **base_urls([B])})


def recorded(folder: Path, **values: Any) -> RunFolder:
    """A run whose episode failed at a limit of two steps, with *values* in its configuration."""
    run = write_run(folder, [Play(outcome=None, config={"limits": {"max_steps": 2}})])
    manifest = run.read_manifest()
    given = {"planner": "none", "judge": "none", **values}
    run.write_manifest(manifest.model_copy(update={"config": manifest.config.model_copy(update=given)}))
    with TraceWriter(run.trace(Play().job.episode_id), BlobStore(run.blobs)) as trace:
        trace.append(Footer(outcome="failure", ended_by="max_steps", judged_by="none", totals=Totals(steps=2), at=""))
    return run


def test_a_resume_refuses_a_new_server_that_no_model_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recorded one stays, also where it is given again."""
    run = recorded(tmp_path / "r", policy="local:nowhere", base_url=A)
    before = run.manifest.read_bytes()
    more = ("resume", run.path, "--max-steps", "40")
    assert mira(monkeypatch, *more, "--base-url", B) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--base-url {B}: no model of this run uses it (policy local:nowhere, planner none" in line
    for words in ((), ("--base-url", A)):
        assert mira(monkeypatch, *more, *words) == 2
        assert "no folder 'nowhere'" in capsys.readouterr().err, "the next check"
    assert run.manifest.read_bytes() == before


def test_the_key_of_another_vendor_is_not_sent_to_a_recorded_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where ANTHROPIC_BASE_URL names another server, which the recorded one takes precedence over."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-a-test")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", B)
    run = recorded(tmp_path / "r", policy="openai:p", base_url=A)
    before = run.manifest.read_bytes()
    more = ("resume", run.path, "--max-steps", "40", "--policy", "anthropic:c")
    assert mira(monkeypatch, *more) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"policy anthropic:c would send its key to {A}, where this run called openai:p (OpenAI protocol" in line
    assert line.endswith("give --base-url policy=URL") and run.manifest.read_bytes() == before
    config = run.read_manifest().config
    changed = config.model_copy(update={"policy": "anthropic:c"})
    check_changed_servers(changed, config, {"base_url": A}, {})
    check_changed_servers(changed, config, {}, {"base_url": A})
    check_changed_servers(changed.model_copy(update={"policy_base_url": B}), config, {"policy_base_url": B}, {})
    check_changed_servers(changed.model_copy(update={"base_url": None}), config, {}, {"base_url": None})
    check_changed_servers(config.model_copy(update={"policy": "litellm:openai/p"}), config, {}, {})


def test_the_command_refuses_it(tmp_path: Path) -> None:
    words = ("run", "x", "--url", "http://127.0.0.1:9/", "--policy", "openai:p", "--base-url", A)
    done = run_mira(*words, "--base-url", f"grounder={B}", "--out", tmp_path / "runs")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "grounder without a model" in done.stderr and not (tmp_path / "runs").exists()


@pytest.mark.browser
async def test_each_role_asks_its_own_server_and_a_resume_moves_one(shop: Shop, tmp_path: Path) -> None:
    async with misbehaving_server(Roles("policy", 2)) as first, misbehaving_server(Roles()) as second:
        broken = await run_task(
            "Order for bob",
            shop.url,
            policy="openai:m",
            planner="openai:m",
            judge="same",
            k=2,
            out=tmp_path,
            base_url=second.openai_url,
            policy_base_url=first.openai_url,
            retry_window_s=0,
        )
        assert broken.outcome == "broken" and broken.folder is not None
        assert {role_of(one) for one in first.requests} == {"policy"}
        assert {role_of(one) for one in second.requests} >= {"planner"}
        assert "policy" not in {role_of(one) for one in second.requests}
        async with misbehaving_server(Roles()) as third:
            done = await resume(broken.folder, policy_base_url=third.openai_url)
            assert {role_of(one) for one in third.requests} == {"policy"}
        assert [episode.outcome for episode in done.episodes] == ["success"]
        config = RunFolder(broken.folder).read_manifest().config
        assert (config.policy_base_url, config.base_url) == (third.openai_url, second.openai_url)
