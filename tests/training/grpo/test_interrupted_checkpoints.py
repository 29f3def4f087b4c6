"""Training continued from a checkpoint on disk: a foreign one, and one truncated by a full disk."""

from __future__ import annotations

import os
import pickle
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerCallback

from benchmarks.toy_models.puzzles import fresh_model
from envs.core.errors import BadInput, NotWritten
from tests.full_disk import small_disk
from training.grpo import run as running
from training.grpo.puzzles import make_puzzles
from training.grpo.run import train_grpo
from training.grpo.settings import GrpoSettings, parse_settings
from training.grpo.trainer import build_trainer

MAZES = make_puzzles("maze", 12, seed=0, size=5)
SETTINGS: dict[str, Any] = {
    "group": 4,
    "answer_tokens": 6,
    "steps": 2,
    "kl": 0.0,
    "optimization": {"batch_rows": 8, "learning_rate": 1e-3},
    "compute": {"max_tokens": 128, "threads": 1, "cpu": True, "save_minutes": 1e-9},
}
TOUCH = "touch {}"


class Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (TOUCH.format(shlex.quote(str(self.mark))),)  # pyright: ignore[reportDeprecated]  # the payload


class Killed(Exception):
    pass


class Kill(TrainerCallback):
    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 1:
            raise Killed


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh_model(tmp_path_factory.mktemp("start") / "model", width=32, layers=1)


def settings() -> GrpoSettings:
    return parse_settings(SETTINGS, "here")


def broken_off(start: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the checkpoint of a run that was killed after its first update."""

    def killed(*options: Any) -> Any:
        trainer = build_trainer(*options)
        trainer.add_callback(Kill())
        return trainer

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(running, "build_trainer", killed)
        train_grpo(MAZES, str(start), out, settings(), log=print)
    return out / "checkpoints" / "checkpoint-1"


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth", "pytorch_model.bin"])
def test_a_foreign_checkpoint_executes_no_code(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    checkpoint, mark = broken_off(start, tmp_path / "run", monkeypatch), tmp_path / "ran"
    assert (checkpoint / name).exists() or name == "pytorch_model.bin"
    torch.save(Evil(mark), checkpoint / name)
    (checkpoint / "training_args.bin").write_bytes(pickle.dumps(Evil(mark)))
    if name == "pytorch_model.bin":
        (checkpoint / "model.safetensors").unlink()
    with pytest.raises(BadInput) as refused:
        train_grpo(MAZES, str(start), tmp_path / "run", settings(), log=print)
    assert str(checkpoint) in str(refused.value) and "\n" not in str(refused.value)
    assert not mark.exists()
    torch.load(checkpoint / name, weights_only=False)
    assert mark.exists(), "the negative control: it is a real one"


@pytest.mark.parametrize("free", [60_000, 150_000])
def test_training_interrupted_by_a_full_disk_ends_with_the_same_weights(start: Path, tmp_path: Path, free: int) -> None:
    whole = train_grpo(MAZES, str(start), tmp_path / "whole", settings(), log=print)
    with small_disk(64 << 20) as disk:
        out = disk.path / "run"
        out.mkdir()
        disk.leave(free)
        with pytest.raises(NotWritten) as refused:
            train_grpo(MAZES, str(start), out, settings(), log=print)
        assert str(out) in str(refused.value) and "\n" not in str(refused.value)
        disk.resize(64 << 20)
        result = train_grpo(MAZES, str(start), out, settings(), log=print)
        weights = load_file(whole.model / "model.safetensors")
        for name, value in load_file(result.model / "model.safetensors").items():
            torch.testing.assert_close(weights[name], value, rtol=0, atol=0)
