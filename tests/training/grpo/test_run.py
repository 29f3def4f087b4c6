"""A run from start to end: what it leaves, that it goes on to the same end, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import accelerate
import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

from envs.core.errors import BadInput
from tests.training.engine.fsdp_on_cpu import TWO
from training.engine.settings import Compute, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.grpo import run as running
from training.grpo.evaluation import measure
from training.grpo.puzzles import make_puzzles
from training.grpo.run import improve, load_start, read_held_out
from training.grpo.settings import GrpoSettings, parse_settings
from training.grpo.trainer import trainer_of
from training.toy_models.puzzles import fresh_model, reference_rows

CPU: dict[str, Any] = {"max_tokens": 64, "threads": 1, "cpu": True}
TRAIN = make_puzzles("maze", 24, seed=0, size=3)
HELD_OUT = make_puzzles("maze", 12, seed=1, size=3, apart_from=TRAIN)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It has seen a few right answers, so that some of its own are right."""
    folder = tmp_path_factory.mktemp("start")
    fresh = fresh_model(folder / "fresh", width=64, layers=2)
    _, tokenizer = load_start(fresh, seeing=False)
    how = Optimization(learning_rate=3e-3, epochs=12, batch_rows=8)
    rows = reference_rows(TRAIN, tokenizer)
    return supervised(SupervisedJob(start=fresh, optimization=how, compute=Compute(**CPU)), rows, folder / "sft")


def settings(**changes: Any) -> GrpoSettings:
    given: dict[str, Any] = {
        "answer_tokens": 8,
        "micro_rows": 32,
        "steps": 4,
        "kl": 0.01,
        "optimization": {"batch_rows": 32, "learning_rate": 3e-4, "warmup": 0},
        "compute": CPU,
    }
    return parse_settings({**given, **changes}, "here")


def silent(_: str) -> None:
    pass


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def test_a_run_leaves_a_policy_and_what_it_was_worth(start: Path, tmp_path: Path) -> None:
    said: list[str] = []
    made = settings(held_out_every=2)
    found = improve(TRAIN, str(start), tmp_path / "run", made, held_out=HELD_OUT, tell=said.append)
    assert [one.update for one in found.held_out] == [0, 2, 4]
    assert found.updates == 4 and found.first_reward is not None and found.last_reward is not None
    model, tokenizer = load_start(found.model, seeing=False)
    again = measure(model, tokenizer, HELD_OUT, made)
    assert again == found.held_out[-1].measured, "what lies there is what was measured"
    assert len(again.solved) == round((again.correct.value or 0) * 12)
    assert said[0].startswith("update 0: ")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "grpo.json",
        "held_out.jsonl",
        "log.json",
        "model",
    ]
    done = improve(TRAIN, str(start), tmp_path / "run", made, held_out=HELD_OUT, tell=said.append)
    assert done == found, "a run that is done is told again"


@pytest.mark.parametrize(("reuse", "at"), [(1, 2), (2, 3)])
def test_a_run_that_is_broken_off_goes_on_to_the_same_end(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reuse: int, at: int
) -> None:
    """Also in the middle of a batch that is learned from twice: it goes on from before that batch."""
    made = settings(reuse=reuse, compute={**CPU, "save_minutes": 1e-9})
    whole = improve(TRAIN, str(start), tmp_path / "whole", made, tell=silent)

    class Killed(Exception):
        pass

    class Kill(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == at:
                raise Killed

    def killed(*given: Any) -> Any:
        trainer = trainer_of(*given)
        trainer.add_callback(Kill())
        return trainer

    with monkeypatch.context() as patch:
        patch.setattr(running, "trainer_of", killed)
        with pytest.raises(Killed):
            improve(TRAIN, str(start), tmp_path / "broken", made, tell=silent)
    assert not (tmp_path / "broken" / "model").exists()
    found = improve(TRAIN, str(start), tmp_path / "broken", made, tell=silent)
    assert found.updates == whole.updates == 4
    for name, value in weights(tmp_path / "whole").items():
        torch.testing.assert_close(weights(tmp_path / "broken")[name], value, rtol=0, atol=0)


def test_the_same_seed_learns_the_same_and_another_another(start: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        improve(TRAIN, str(start), tmp_path / name, settings(seed=seed, steps=2), tell=silent)
    same, other = ([weights(tmp_path / name)[key] for key in weights(tmp_path / "a")] for name in "bc")
    own = list(weights(tmp_path / "a").values())
    assert all(torch.equal(one, two) for one, two in zip(own, same, strict=True))
    assert not all(torch.equal(one, two) for one, two in zip(own, other, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("proximity", ["none", "tiered"])
def test_it_learns(start: Path, tmp_path: Path, proximity: str) -> None:
    """With a bit of luck removed: success of samples, over the first and the last five updates."""
    made = settings(steps=60, reward={"proximity": proximity}, optimization={"batch_rows": 64, "learning_rate": 5e-4})
    improve(TRAIN, str(start), tmp_path, made, tell=silent)
    log = json.loads((tmp_path / "log.json").read_text())
    right = [row["part/correct"] for row in log if "part/correct" in row]
    assert sum(right[-5:]) / 5 > sum(right[:5]) / 5 + 0.15


@pytest.mark.parametrize(
    ("given", "changes", "says"),
    [
        pytest.param({}, {"seed": 1}, "holds a GRPO run of another start, other examples or other", id="settings"),
        pytest.param({"examples": TRAIN[:20]}, {}, "holds a GRPO run of another start", id="other examples"),
        pytest.param({"held_out": HELD_OUT[:3]}, {}, "holds a GRPO run of another start", id="other held-out ones"),
        pytest.param({"held_out": TRAIN[3:5]}, {}, "2 of 2 held-out examples are among", id="learned from"),
        pytest.param({"start": "nowhere"}, {}, "'nowhere' is no checkpoint", id="no start"),
        pytest.param({"examples": TRAIN[:3]}, {}, "a step takes 4 prompts", id="too few"),
    ],
)
def test_what_is_refused(
    start: Path, tmp_path: Path, given: dict[str, Any], changes: dict[str, Any], says: str
) -> None:
    improve(TRAIN, str(start), tmp_path / "run", settings(steps=1), held_out=HELD_OUT, tell=silent)
    before = (tmp_path / "run" / "model" / "model.safetensors").stat().st_mtime_ns
    asked: dict[str, Any] = {"examples": TRAIN, "start": str(start), "held_out": HELD_OUT, **given}
    with pytest.raises(BadInput, match=says):
        improve(
            asked["examples"],
            asked["start"],
            tmp_path / "run",
            settings(**{"steps": 1, **changes}),
            held_out=asked["held_out"],
            tell=silent,
        )
    assert (tmp_path / "run" / "model" / "model.safetensors").stat().st_mtime_ns == before


def test_a_folder_of_something_else(start: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(BadInput, match="is not an empty folder and holds no GRPO run"):
        improve(TRAIN, str(start), tmp_path, settings(), tell=silent)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_reward_that_does_not_fit_leaves_nothing(start: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="one target is a maze"):
        improve(TRAIN, str(start), tmp_path / "run", settings(reward={"kind": "lpo"}), tell=silent)
    assert not (tmp_path / "run").exists()


def test_nothing_is_measured_without_held_out_examples(start: Path, tmp_path: Path) -> None:
    found = improve(TRAIN, str(start), tmp_path / "run", settings(steps=1), tell=silent)
    assert found.held_out == () == read_held_out(tmp_path / "run")


@pytest.mark.slow
def test_two_processes_do_one_run(start: Path, tmp_path: Path) -> None:
    """Each rewards whole groups of its own, one of them measures and writes."""
    made = settings(launcher=TWO, held_out_every=2)
    found = improve(TRAIN, str(start), tmp_path / "run", made, held_out=HELD_OUT, tell=silent)
    assert [one.update for one in found.held_out] == [0, 2, 4]
    log = json.loads((tmp_path / "run" / "log.json").read_text())
    assert [row["num_tokens"] for row in log if "num_tokens" in row][-1] > 4 * 32 * 10
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "grpo.json",
        "held_out.jsonl",
        "log.json",
        "model",
    ]
    alone = improve(TRAIN, str(start), tmp_path / "alone", settings(), held_out=HELD_OUT, tell=silent)
    assert alone.held_out[0] == found.held_out[0]
    assert improve(TRAIN, str(start), tmp_path / "run", made, held_out=HELD_OUT, tell=silent) == found


def test_a_launched_process_says_why_it_fails(start: Path, tmp_path: Path) -> None:
    launcher = (sys.executable, "-c", "import sys; print('no room', file=sys.stderr); sys.exit(3)")
    with pytest.raises(BadInput, match="ended with exit code 3"):
        improve(TRAIN, str(start), tmp_path / "run", settings(launcher=launcher), tell=silent)
    assert not (tmp_path / "run" / "model").exists()


def test_groups_that_two_processes_cannot_share(start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = load_start(start, seeing=False)

    def three(**_: object) -> SimpleNamespace:
        return SimpleNamespace(num_processes=3)

    monkeypatch.setattr(accelerate, "PartialState", three)
    with pytest.raises(BadInput, match="batch_rows 32 is no multiple of 3 processes by groups of 8"):
        trainer_of(model, tokenizer, TRAIN, settings(), tmp_path)
