"""A run from start to end: its files, its continuation after a kill, and the errors."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel, TrainerCallback

from benchmarks.toy_models.puzzles import fresh_model, reference_rows
from envs.core.actions import Click
from envs.core.errors import BadInput
from envs.core.run_lock import LOCK_NAME, RunLock, RunLocked
from models.local.declarations import declarations
from models.prompting.prompt_tokens import PromptTokens
from tests.training.engine.deepspeed_on_cpu import PARTITIONED, ZERO_2, needs_deepspeed
from tests.training.engine.fsdp_on_cpu import SHARDED, TWO, WHAT_ACCELERATE_TELLS
from training.engine.processes import PATIENCE
from training.engine.settings import Compute, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.grpo import run as running
from training.grpo import trainer as trainer_module
from training.grpo.completion_length import span
from training.grpo.evaluation import measure
from training.grpo.examples import Example, messages_of
from training.grpo.puzzles import make_puzzles
from training.grpo.results import read_held_out
from training.grpo.rewards import StepTarget
from training.grpo.run import load_start, save_start, train_grpo
from training.grpo.settings import GrpoSettings, parse_settings
from training.grpo.trainer import build_trainer
from training.serving.export import export

CPU: dict[str, Any] = {"max_tokens": 64, "threads": 1, "cpu": True}
TRAIN = make_puzzles("maze", 24, seed=0, size=3)
HELD_OUT = make_puzzles("maze", 12, seed=1, size=3, apart_from=TRAIN)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It has seen a few right answers, so that some of its own are right."""
    folder = tmp_path_factory.mktemp("start")
    fresh = fresh_model(folder / "fresh", width=64, layers=2)
    _, tokenizer = load_start(fresh, vision=False)
    how = Optimization(learning_rate=3e-3, epochs=12, batch_rows=8)
    rows = reference_rows(TRAIN, tokenizer)
    return supervised(SupervisedJob(start=fresh, optimization=how, compute=Compute(**CPU)), rows, folder / "sft")


def settings(**changes: Any) -> GrpoSettings:
    options: dict[str, Any] = {
        "answer_tokens": 8,
        "micro_rows": 32,
        "steps": 4,
        "kl": 0.01,
        "optimization": {"batch_rows": 32, "learning_rate": 3e-4, "warmup": 0},
        "compute": CPU,
    }
    return parse_settings({**options, **changes}, "here")


def silent(_: str) -> None:
    pass


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def test_a_run_writes_a_policy_and_its_evaluations(start: Path, tmp_path: Path) -> None:
    completion: list[str] = []
    config = settings(held_out_every=2)
    result = train_grpo(TRAIN, str(start), tmp_path / "run", config, held_out=HELD_OUT, log=completion.append)
    assert [one.update for one in result.held_out] == [0, 2, 4]
    assert result.updates == 4 and result.first_reward is not None and result.last_reward is not None
    model, tokenizer = load_start(result.model, vision=False)
    again = measure(model, tokenizer, HELD_OUT, config)
    assert again == result.held_out[-1].measured, "what lies there is what was measured"
    assert len(again.solved) == round((again.correct.value or 0) * 12)
    assert completion[0].startswith("update 0: ")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "grpo.json",
        "held_out.jsonl",
        "lease",
        "log.json",
        "model",
    ]
    done = train_grpo(TRAIN, str(start), tmp_path / "run", config, held_out=HELD_OUT, log=completion.append)
    assert done == result, "a finished run returns the same result"


def test_an_adapter_on_its_start_is_the_model_that_was_trained(start: Path, tmp_path: Path) -> None:
    how = {"batch_rows": 32, "learning_rate": 3e-3, "warmup": 0}
    changed = settings(compute={**CPU, "lora": {"rank": 4}}, optimization=how)
    train_grpo(TRAIN, str(start), tmp_path / "run", changed, log=silent)
    export(start, tmp_path / "run" / "adapter", tmp_path / "merged")
    merged, before = (load_file(folder / "model.safetensors") for folder in (tmp_path / "merged", start))
    trained = weights(tmp_path / "run")
    assert all(torch.allclose(merged[name], weight, atol=1e-6) for name, weight in trained.items())
    assert any(not torch.equal(before[name], weight) for name, weight in trained.items())
    assert declarations(tmp_path / "run" / "adapter") == declarations(tmp_path / "run" / "model")


def test_prompts_that_the_limit_of_tokens_cuts_are_counted(start: Path, tmp_path: Path) -> None:
    """Symptom: four steps of 2,000 tokens were trained on in a room of 24, and no line said so."""
    _, tokenizer = load_start(start, vision=False)
    page = "\n".join(f"[{number}] button" for number in range(200))
    click = StepTarget(action=Click(ref=7), language="program")
    steps = [Example(name=str(at), messages=(("user", f"{page}\n{at}"),), target=click) for at in range(4)]
    how = settings(steps=1, group=4, optimization={"batch_rows": 16}, answer_tokens=40)
    lengths = [len(PromptTokens(tokenizer).checked(messages_of(step))) for step in steps]
    assert how.room == 24 and min(lengths) > 2_000
    lines: list[str] = []
    train_grpo(steps, str(start), tmp_path / "run", how, log=lines.append)
    room = "and compute.max_tokens 64 less answer_tokens 40 leaves 24; raise compute.max_tokens"
    counted = f"they have {span(lengths)} tokens, {room}"
    assert f"warning: 4 of 4 prompts lose their middle: {counted}" in lines


def test_prompts_of_puzzles_that_would_be_cut_are_counted(start: Path, tmp_path: Path) -> None:
    _, tokenizer = load_start(start, vision=False)
    longest = max(len(PromptTokens(tokenizer).checked(messages_of(maze))) for maze in (*TRAIN, *HELD_OUT))
    for room, cut in ((longest, False), (longest - 1, True)):
        lines: list[str] = []
        how = settings(steps=1, kl=0, compute={**CPU, "max_tokens": room + 8})
        train_grpo(TRAIN, str(start), tmp_path / str(room), how, held_out=HELD_OUT, log=lines.append)
        assert any("of 36 prompts lose their middle" in line for line in lines) == cut


def test_prompts_and_answers_fit_the_context_of_the_start(start: Path, tmp_path: Path) -> None:
    """Beyond its positions GPT-2 fails, and a model with rotary positions learns at positions that it never plays at.
    As in play, a prompt loses its middle."""
    _, tokenizer = load_start(start, vision=False)
    ends = {"bos_token_id": tokenizer.eos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=128, n_embd=32, n_layer=1, n_head=2, **ends)
    save_start(GPT2LMHeadModel(config), tokenizer, tmp_path / "gpt2")
    long = [one.model_copy(update={"messages": (("user", f"{one.messages[0][1]}\n{'1' * 150}"),)}) for one in TRAIN]
    lines: list[str] = []
    how = settings(steps=1, kl=0, compute={**CPU, "max_tokens": 400})
    result = train_grpo(long, str(tmp_path / "gpt2"), tmp_path / "run", how, held_out=HELD_OUT, log=lines.append)
    assert [one.update for one in result.held_out] == [0, 1]
    context = "the start has a context of 128 tokens, fewer than compute.max_tokens 400"
    assert f"warning: 24 of 36 prompts lose their middle: {context}" in lines
    assert train_grpo(long, str(tmp_path / "gpt2"), tmp_path / "run", how, held_out=HELD_OUT, log=silent) == result
    wide = settings(answer_tokens=128, compute={**CPU, "max_tokens": 400})
    with pytest.raises(BadInput, match="leaves no room for a prompt: the start has a context of 128 tokens"):
        train_grpo(long, str(tmp_path / "gpt2"), tmp_path / "other", wide, log=silent)


@pytest.mark.parametrize(
    ("reuse", "at", "prompts"),
    [
        pytest.param(1, 2, 24, id="first epoch"),
        pytest.param(2, 3, 24, id="batch used twice"),
        pytest.param(1, 2, 8, id="start of the second epoch"),
        pytest.param(1, 3, 8, id="second epoch"),
        pytest.param(1, 3, 4, id="start of the fourth epoch"),
    ],
)
def test_an_interrupted_run_continues_to_the_same_result(  # noqa: PLR0917 - fixtures
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reuse: int, at: int, prompts: int
) -> None:
    """Also in the middle of a batch that is used twice: training continues before that batch. An epoch has an update
    for every four prompts, and an order of its own."""
    config = settings(reuse=reuse, compute={**CPU, "save_minutes": 1e-9})
    whole = train_grpo(TRAIN[:prompts], str(start), tmp_path / "whole", config, log=silent)

    class Killed(Exception):
        pass

    class Kill(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == at:
                raise Killed

    def killed(*options: Any) -> Any:
        trainer = build_trainer(*options)
        trainer.add_callback(Kill())
        return trainer

    with monkeypatch.context() as patch:
        patch.setattr(running, "build_trainer", killed)
        with pytest.raises(Killed):
            train_grpo(TRAIN[:prompts], str(start), tmp_path / "broken", config, log=silent)
    assert not (tmp_path / "broken" / "model").exists()
    result = train_grpo(TRAIN[:prompts], str(start), tmp_path / "broken", config, log=silent)
    assert result.updates == whole.updates == 4
    for name, value in weights(tmp_path / "whole").items():
        torch.testing.assert_close(weights(tmp_path / "broken")[name], value, rtol=0, atol=0)


def test_the_same_seed_learns_the_same_and_another_another(start: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train_grpo(TRAIN, str(start), tmp_path / name, settings(seed=seed, steps=2), log=silent)
    same, other = ([weights(tmp_path / name)[key] for key in weights(tmp_path / "a")] for name in "bc")
    own = list(weights(tmp_path / "a").values())
    assert all(torch.equal(one, two) for one, two in zip(own, same, strict=True))
    assert not all(torch.equal(one, two) for one, two in zip(own, other, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("proximity", [pytest.param("none", marks=pytest.mark.heavy), "tiered"])
def test_it_learns(start: Path, tmp_path: Path, proximity: str) -> None:
    """With a bit of luck removed: success of samples, over the first and the last five updates."""
    config = settings(steps=60, reward={"proximity": proximity}, optimization={"batch_rows": 64, "learning_rate": 5e-4})
    train_grpo(TRAIN, str(start), tmp_path, config, log=silent)
    log = json.loads((tmp_path / "log.json").read_text())
    right = [row["part/correct"] for row in log if "part/correct" in row]
    assert sum(right[-5:]) / 5 > sum(right[:5]) / 5 + 0.15


@pytest.fixture(scope="module")
def trained(start: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of one step."""
    out = tmp_path_factory.mktemp("trained") / "run"
    train_grpo(TRAIN, str(start), out, settings(steps=1), held_out=HELD_OUT, log=silent)
    return out


@pytest.mark.parametrize(
    ("options", "changes", "says"),
    [
        pytest.param({}, {"seed": 1}, "holds a GRPO run with other settings of seed: restore", id="settings"),
        pytest.param(
            {"examples": TRAIN[:20]}, {}, "holds a GRPO run with other examples: restore", id="other examples"
        ),
        pytest.param(
            {"held_out": HELD_OUT[:3]}, {}, "holds a GRPO run with other held-out examples: r", id="other held-out ones"
        ),
        pytest.param({"held_out": TRAIN[3:5]}, {}, "2 of 2 held-out examples are also training", id="trained on"),
        pytest.param({"start": "nowhere"}, {}, "'nowhere' is not a checkpoint", id="no start"),
        pytest.param({"examples": TRAIN[:3]}, {}, "a step takes 4 prompts", id="too few"),
    ],
)
def test_invalid_runs_are_rejected(  # noqa: PLR0917 - fixtures
    start: Path, trained: Path, tmp_path: Path, options: dict[str, Any], changes: dict[str, Any], says: str
) -> None:
    shutil.copytree(trained, tmp_path / "run")
    before = (tmp_path / "run" / "model" / "model.safetensors").stat().st_mtime_ns
    questions: dict[str, Any] = {"examples": TRAIN, "start": str(start), "held_out": HELD_OUT, **options}
    with pytest.raises(BadInput, match=says):
        train_grpo(
            questions["examples"],
            questions["start"],
            tmp_path / "run",
            settings(**{"steps": 1, **changes}),
            held_out=questions["held_out"],
            log=silent,
        )
    assert (tmp_path / "run" / "model" / "model.safetensors").stat().st_mtime_ns == before


def test_a_folder_of_something_else(start: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(BadInput, match="is not an empty folder and holds no GRPO run"):
        train_grpo(TRAIN, str(start), tmp_path, settings(), log=silent)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_of_two_concurrent_runs_one_is_refused(start: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with RunLock(tmp_path / "run"), pytest.raises(RunLocked, match="is in use by"):
        train_grpo(TRAIN, str(start), tmp_path / "run", settings(steps=1), log=silent)
    assert [path.name for path in (tmp_path / "run").iterdir()] == [LOCK_NAME]


def test_a_reward_that_does_not_fit_leaves_nothing(start: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="one target is a maze"):
        train_grpo(TRAIN, str(start), tmp_path / "run", settings(reward={"kind": "lpo"}), log=silent)
    assert not (tmp_path / "run").exists()


def test_nothing_is_measured_without_held_out_examples(start: Path, tmp_path: Path) -> None:
    result = train_grpo(TRAIN, str(start), tmp_path / "run", settings(steps=1), log=silent)
    assert result.held_out == () == read_held_out(tmp_path / "run")


@pytest.mark.heavy  # the next test trains in two processes, too
def test_two_processes_do_one_run(start: Path, tmp_path: Path) -> None:
    """Each rewards whole groups of its own, one of them measures and writes."""
    config = settings(launcher=TWO, held_out_every=2)
    result = train_grpo(TRAIN, str(start), tmp_path / "run", config, held_out=HELD_OUT, log=silent)
    assert [one.update for one in result.held_out] == [0, 2, 4]
    log = json.loads((tmp_path / "run" / "log.json").read_text())
    assert [row["num_tokens"] for row in log if "num_tokens" in row][-1] > 4 * 32 * 10
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "grpo.json",
        "held_out.jsonl",
        "lease",
        "log.json",
        "model",
    ]
    alone = train_grpo(TRAIN, str(start), tmp_path / "alone", settings(), held_out=HELD_OUT, log=silent)
    assert alone.held_out[0] == result.held_out[0]
    assert train_grpo(TRAIN, str(start), tmp_path / "run", config, held_out=HELD_OUT, log=silent) == result


WAYS = pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="every weight, a reference"),
        pytest.param(
            {
                "compute": {**CPU, "lora": {"rank": 4, "alpha": 8}},
                "optimization": {"batch_rows": 32, "learning_rate": 3e-3},
            },
            id="adapters",
            marks=pytest.mark.heavy,  # test_fsdp.py trains adapters, too
        ),
    ],
)


@pytest.mark.slow
@WAYS
def test_sharded_weights_learn_what_whole_ones_learn(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    """FSDP 2 over two processes. The completions of the processes differ in length."""
    assert_learned_alike(start, tmp_path, monkeypatch, changes, (SHARDED, WHAT_ACCELERATE_TELLS))


@pytest.mark.heavy
@needs_deepspeed
@WAYS
def test_deepspeed_learns_what_whole_models_learn(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    """ZeRO 2 over two processes."""
    assert_learned_alike(start, tmp_path, monkeypatch, changes, (PARTITIONED, ZERO_2))


def assert_learned_alike(
    start: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    parts: tuple[tuple[str, ...], dict[str, str]],
) -> None:
    """The launcher and environment *parts* give the same completions, rewards, evaluations and weights as the model
    whole in each process (DDP)."""
    runs = {}
    for name, (launcher, environ) in {"whole": (TWO, {}), "parts": parts}.items():
        for key, value in environ.items():
            monkeypatch.setenv(key, value)
        config = settings(launcher=launcher, held_out_every=2, **changes)
        runs[name] = train_grpo(TRAIN, str(start), out / name, config, held_out=HELD_OUT, log=silent)
    assert runs["parts"].held_out == runs["whole"].held_out
    logs = {name: json.loads((out / name / "log.json").read_text()) for name in runs}
    rewards = {name: [row["reward"] for row in log if "reward" in row] for name, log in logs.items()}
    assert rewards["parts"] == rewards["whole"] and len(rewards["whole"]) == 4
    before, whole, parted = load_file(start / "model.safetensors"), weights(out / "whole"), weights(out / "parts")
    assert parted.keys() == whole.keys()
    apart = max((parted[key] - whole[key]).abs().max().item() for key in whole)
    learned = max((before[key] - whole[key]).abs().max().item() for key in whole)
    assert apart < 1e-4, "up to the order of sums"
    assert learned > 1e-3


@pytest.mark.heavy
@pytest.mark.slow
def test_processes_wait_for_a_long_evaluation(start: Path, tmp_path: Path) -> None:
    """The first one answers the held-out examples, which takes longer than PyTorch's timeout of ten minutes."""
    config = settings(launcher=(*TWO, "tests.training.grpo.timed_processes"), steps=1)
    train_grpo(TRAIN, str(start), tmp_path / "run", config, held_out=HELD_OUT, log=silent)
    waits = {path.name: float(path.read_text()) for path in (tmp_path / "run").glob("wait-*")}
    assert waits == dict.fromkeys(("wait-0", "wait-1"), PATIENCE.total_seconds())


def test_a_launched_process_says_why_it_fails(start: Path, tmp_path: Path) -> None:
    launcher = (sys.executable, "-c", "import sys; print('no room', file=sys.stderr); sys.exit(3)")
    with pytest.raises(BadInput, match="ended with exit code 3"):
        train_grpo(TRAIN, str(start), tmp_path / "run", settings(launcher=launcher), log=silent)
    assert not (tmp_path / "run" / "model").exists()


def test_groups_that_two_processes_cannot_share(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = load_start(start, vision=False)

    def three(**_: object) -> SimpleNamespace:
        return SimpleNamespace(num_processes=3)

    monkeypatch.setattr(trainer_module, "process_state", three)
    with pytest.raises(BadInput, match="batch_rows 32 is not a multiple of 3 processes by groups of 8"):
        build_trainer(model, tokenizer, TRAIN, settings(), tmp_path)
