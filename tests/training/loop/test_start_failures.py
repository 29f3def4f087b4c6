"""The first phase's tasks, chosen by the failures of the start. Nothing is played or trained here."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.suites.miniwob.task_sets import FIRST_TRAINING_SEED
from tests.agent.episodes import Play, write_run
from training.loop import loop as loops
from training.loop.curriculum import build_pool, training_seeds
from training.loop.curriculum.task_list import Selection
from training.loop.loop import Loop
from training.loop.metrics import PhaseMetrics
from training.loop.parts import RunLocation, read_record, write_record
from training.loop.phase_context import PhaseContext
from training.loop.rounds import Draw
from training.loop.settings import load_settings

NAMES = 'pool.names=["click-button","login-user","enter-text"]'


def test_the_failures_of_the_start_choose_the_first_tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[TaskRef, ...]] = []

    async def play_run(mark: Path, config: Any, policy: Path, refs: tuple[TaskRef, ...], **_: Any) -> Path:
        asked.append(tuple(refs))
        assert config.attempts == 1 and mark.parent.name == "phase-1"
        seed = FIRST_TRAINING_SEED + 500
        plays = [Play(task="login-user", seed=seed, outcome="failure"), Play(task="enter-text", seed=seed)]
        return write_run(tmp_path / "played", plays).path

    measured = write_run(tmp_path / "measured", [Play()]).path

    async def evaluate(*_: Any, **__: Any) -> Path:
        return measured

    async def run_phase(context: PhaseContext, tasks: tuple[TaskRef, ...], draw: Draw) -> PhaseMetrics:
        return PhaseMetrics(phase=context.number, rows=len(tasks))

    for stub in (play_run, evaluate, run_phase):
        monkeypatch.setattr(loops, stub.__name__, stub)
    shares = ["curriculum.explore_share=0", "curriculum.rare_share=0", "rollouts.tasks=4", "rollouts.attempts=2"]
    settings = load_settings(None, [NAMES, "pool.size=60", "phases=1", "curriculum.start_tasks=6", *shares])
    asyncio.run(Loop(tmp_path / "out", settings, log=lambda _: None).run())
    (drawn,) = asked
    assert len(set(drawn)) == 6 and {ref.name for ref in drawn} <= {"click-button", "login-user", "enter-text"}
    chosen = read_record(tmp_path / "out" / "phase-1" / "tasks.json", Selection)
    assert chosen.failures == 1
    assert [listed.task.name for listed in chosen.tasks] == ["login-user"] * 4


def test_the_finished_run_of_the_start_is_neither_announced_nor_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every later phase logged that it plays the tasks, and with `shared` hashed the weights of the start."""
    seed = FIRST_TRAINING_SEED + 500
    played = write_run(
        tmp_path / "played", [Play(task="login-user", seed=seed, outcome="failure"), Play(task="enter-text", seed=seed)]
    )
    write_record(tmp_path / "out" / "phase-1" / "start.json", RunLocation(run=played.path))
    settings = load_settings(None, [NAMES, "pool.size=60", "curriculum.start_tasks=2", "rollouts.tasks=4"])

    def refuse(*_: Any, **__: Any) -> Path:
        raise AssertionError("the run is finished")

    monkeypatch.setattr(loops, "play_run", refuse)
    lines: list[str] = []
    pool = asyncio.run(build_pool("miniwob", names=("login-user",), seeds=training_seeds("miniwob"), size=60))
    loop = Loop(tmp_path / "out", settings, log=lines.append)
    assert asyncio.run(loop.start_run(pool)) == played.path
    assert not lines


def test_more_tasks_than_the_pool_has_are_refused(tmp_path: Path) -> None:
    settings = load_settings(None, [NAMES, "pool.size=5", "curriculum.start_tasks=6"])
    with pytest.raises(BadInput, match=r"start_tasks is more than pool\.size"):
        Loop.open(tmp_path / "run", settings)
