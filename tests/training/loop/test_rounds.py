"""Dynamic sampling: groups with equal rewards are replaced by new ones, up to a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envs.core.tasks import TaskRef
from models.embedded import embedded_dir
from tests.agent.episodes import Play, write_run
from training.loop import rounds
from training.loop.metrics import played_in
from training.loop.parts import RunLocation, load_or_compute
from training.loop.phase_context import PhaseContext
from training.loop.rounds import play_rounds, played_rounds
from training.loop.settings import load_settings


def refs(*seeds: int) -> tuple[TaskRef, ...]:
    return tuple(TaskRef(suite="miniwob", name="login-user", seed=seed) for seed in seeds)


@dataclass
class World:
    """Plays two attempts at each task: even seeds are always solved, odd ones in the first attempt only."""

    played: list[tuple[int, ...]] = field(default_factory=list)
    asked: list[tuple[int, int]] = field(default_factory=list)
    offered: Sequence[tuple[TaskRef, ...]] = ()

    async def play_run(self, mark: Path, _config: Any, _policy: Path, tasks: Sequence[TaskRef], **_: Any) -> Path:
        place = mark.parent / mark.stem / "run"
        load_or_compute(mark, RunLocation, lambda: RunLocation(run=Path(mark.stem) / "run"))
        if not place.exists():
            self.played.append(tuple(task.seed for task in tasks))
            plays = [
                Play(
                    seed=task.seed,
                    attempt=attempt,
                    outcome="success" if attempt == 1 or not task.seed % 2 else "failure",
                )
                for task in tasks
                for attempt in (1, 2)
            ]
            write_run(place, plays)
        return place

    async def draw(self, number: int, size: int) -> tuple[TaskRef, ...]:
        self.asked.append((number, size))
        return self.offered[len(self.asked) - 1]


def context_of(folder: Path, redraws: int, arm: str = "mgrpo") -> PhaseContext:
    settings = load_settings(
        None, [f"arm={arm}", "rollouts.tasks=3", "rollouts.attempts=2", f"groups.redraws={redraws}"]
    )
    return PhaseContext(
        settings=settings,
        number=1,
        folder=folder,
        policy=embedded_dir(),
        start=embedded_dir(),
        critics={},
        past=(),
        log=lambda _: None,
    )


@pytest.mark.parametrize(
    ("redraws", "offered", "expected"),
    [
        (2, [refs(4, 7), refs(9)], ([(2, 2), (3, 1)], [(1, 2, 4), (4, 7), (9,)])),
        (2, [refs(5, 7)], ([(2, 2)], [(1, 2, 4), (5, 7)])),
        (1, [refs(4, 6)], ([(2, 2)], [(1, 2, 4), (4, 6)])),
        (2, [()], ([(2, 2)], [(1, 2, 4)])),
        (0, [], ([], [(1, 2, 4)])),
    ],
    ids=["bound", "enough", "one round", "pool used up", "off"],
)
async def test_missing_groups_are_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    redraws: int,
    offered: Sequence[tuple[TaskRef, ...]],
    expected: tuple[list[tuple[int, int]], list[tuple[int, ...]]],
) -> None:
    """*expected*: (number and size of each further draw, seeds of each round)."""
    asked, played = expected
    world = World(offered=offered)
    monkeypatch.setattr(rounds, "play_run", world.play_run)
    runs = await play_rounds(context_of(tmp_path, redraws), refs(1, 2, 4), world.draw)
    assert world.asked == asked and world.played == played
    assert list(played_rounds(tmp_path)) == [run.resolve() for run in runs]
    assert played_in(*runs).episodes == 2 * sum(map(len, played))

    again = World(offered=offered)
    monkeypatch.setattr(rounds, "play_run", again.play_run)
    assert await play_rounds(context_of(tmp_path, redraws), refs(1, 2, 4), again.draw) == runs
    assert again.asked == asked and not again.played, "a resumed phase draws the same and plays nothing twice"


async def test_other_arms_play_one_round(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = World()
    monkeypatch.setattr(rounds, "play_run", world.play_run)
    assert len(await play_rounds(context_of(tmp_path, 2, "mira"), refs(2, 4), world.draw)) == 1
    assert not world.asked
