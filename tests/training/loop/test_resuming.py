"""A resumed loop: what it reads of finished phases. Nothing is played or trained here."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from envs.core.errors import BadInput
from tests.agent.episodes import Play, write_run
from tests.training.trajectories import trajectory, worded
from training.data.trajectories import Selection, Trajectory
from training.loop import loop as loops
from training.loop import settings_checks
from training.loop.curriculum import Selection as Tasks
from training.loop.curriculum.task_list import Counts
from training.loop.loop import Loop
from training.loop.metrics import PhaseMetrics
from training.loop.parts import RunLocation, write_record
from training.loop.phase_context import PhaseContext
from training.loop.settings import load_settings

SHOWN, PAST = trajectory(worded("shown")), trajectory(worded("past"))
NO_TASKS = Tasks(tasks=(), counts=Counts(similar=0, rare=0, explore=0, retry=0, missing=0), failures=0)


class World:
    """Stubs for playing, training and reading; reads are recorded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, measured: Path) -> None:
        self.read: list[str] = []
        self.given: list[PhaseContext] = []

        async def evaluate(*_: Any, **__: Any) -> Path:
            return measured

        async def nothing(*_: Any, **__: Any) -> tuple[()]:
            return ()

        async def run_phase(context: PhaseContext, *_: Any) -> PhaseMetrics:
            self.given.append(context)
            return PhaseMetrics(phase=context.number)

        def read_runs(_: Sequence[Path], *, texts: bool) -> Selection:
            assert texts, "the demonstrator may have another tokenizer"
            self.read.append("demonstrations")
            return Selection((SHOWN,), Counter())

        def read_trajectories(path: Path) -> tuple[Trajectory, ...]:
            self.read.append(path.parts[-3])
            return (PAST,)

        stubs = (evaluate, run_phase, read_runs, read_trajectories)
        for name, stub in {"build_pool": nothing, **{item.__name__: item for item in stubs}}.items():
            monkeypatch.setattr(loops, name, stub)
        monkeypatch.setattr(settings_checks, "held_out", nothing)


@pytest.mark.parametrize(
    ("done", "read"),
    [
        (3, []),
        (2, ["demonstrations", "phase-1", "phase-2"]),
        (0, ["demonstrations", "demonstrations", "phase-1", "demonstrations", "phase-1", "phase-2"]),
    ],
)
def test_the_past_is_read_for_unfinished_phases_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, done: int, read: list[str]
) -> None:
    world = World(monkeypatch, write_run(tmp_path / "measured", [Play()]).path)
    write_run(tmp_path / "shown", [Play()])
    for number in (1, 2, 3):
        write_record(tmp_path / "out" / f"phase-{number}" / "tasks.json", NO_TASKS)
        if number <= done:
            write_record(tmp_path / "out" / f"phase-{number}" / "metrics.json", PhaseMetrics(phase=number))
    settings = load_settings(None, ["phases=3", f'demonstrations=["{tmp_path / "shown"}"]'])
    (tmp_path / "out" / "config.json").write_text(settings.model_dump_json())
    progress = asyncio.run(Loop(tmp_path / "out", settings, log=lambda _: None).run())
    assert [item.phase for item in progress.phases] == [0, 1, 2, 3]
    assert world.read == read
    assert [len(item.past) for item in world.given] == [number for number in (1, 2, 3) if number > done]


def test_more_phases_keep_the_evaluation_of_the_phase_that_was_the_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With an evaluation at every third phase, the end of a run of two phases was measured."""
    out = tmp_path / "out"
    World(monkeypatch, write_run(tmp_path / "measured", [Play()]).path)
    for number in (1, 2, 3, 4):
        write_record(out / f"phase-{number}" / "metrics.json", PhaseMetrics(phase=number))
    write_record(out / "phase-2" / "evaluation.json", RunLocation(run=Path("evaluation") / "run"))
    write_run(out / "phase-2" / "evaluation" / "run", [Play()])
    settings = load_settings(None, ["phases=4", "evaluation.every=3"])
    (out / "config.json").write_text(settings.model_copy(update={"phases": 2}).model_dump_json())
    progress = asyncio.run(Loop(out, settings, log=lambda _: None).run())
    assert [item.phase for item in progress.phases if item.evaluation is not None] == [0, 2, 3, 4]


def test_an_evaluation_is_timed_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It was no part of a phase's seconds."""
    out = tmp_path / "out"
    World(monkeypatch, write_run(tmp_path / "measured", [Play()]).path)
    write_record(out / "phase-1" / "metrics.json", PhaseMetrics(phase=1, seconds={"actor": 5.0}))
    write_record(out / "phase-2" / "metrics.json", PhaseMetrics(phase=2))
    write_record(out / "phase-2" / "evaluation.json", RunLocation(run=Path("evaluation") / "run"))
    write_run(out / "phase-2" / "evaluation" / "run", [Play()])
    settings = load_settings(None, ["phases=2"])
    (out / "config.json").write_text(settings.model_dump_json())
    progress = asyncio.run(Loop(out, settings, log=lambda _: None).run())
    assert [tuple(item.seconds) for item in progress.phases] == [("evaluation",), ("actor", "evaluation"), ()], (
        "the evaluation of phase 2 was finished before"
    )


def test_fewer_phases_than_are_done_are_refused(tmp_path: Path) -> None:
    """They would remove the phases behind from `progress.json` and from `mira train show`."""
    out = tmp_path / "out"
    for number in (1, 2):
        write_record(out / f"phase-{number}" / "metrics.json", PhaseMetrics(phase=number))
    (out / "config.json").write_text(load_settings(None, ["phases=3"]).model_dump_json())
    with pytest.raises(BadInput, match=r"has 2 finished phases, more than phases=1: set phases to 2 or more"):
        Loop.open(out, load_settings(None, ["phases=1"]))
    assert Loop.open(out, load_settings(None, ["phases=2"])).settings.phases == 2
