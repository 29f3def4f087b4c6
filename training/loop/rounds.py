"""Plays the rollouts of a phase: one round of tasks, and with groups further rounds in place of groups with equal
rewards (dynamic sampling)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from envs.core.tasks import TaskRef
from training.loop.data import read_runs
from training.loop.parts import run_location
from training.loop.phase_context import PhaseContext
from training.loop.rollouts import play_run, rollout_config
from training.mira.group_advantages import count_groups, groups_of

Draw = Callable[[int, int], Awaitable[tuple[TaskRef, ...]]]
"""Draws the tasks of a further round: (number of the round from 2, number of tasks) to tasks; none if the pool is used
up."""


def round_file(name: str, number: int) -> str:
    """Name of a round's file: `rollouts.json`, `rollouts-2.json`, …"""
    return f"{name}.json" if number == 1 else f"{name}-{number}.json"


def played_rounds(folder: Path) -> tuple[Path, ...]:
    """The runs of the rounds of the phase in *folder* that were begun, in their order."""
    numbers = range(1, 1 + len(list(folder.glob("rollouts*.json"))))
    marks = [folder / round_file("rollouts", number) for number in numbers]
    return tuple(run_location(mark) for mark in marks if mark.exists())


async def play_rounds(context: PhaseContext, tasks: Sequence[TaskRef], draw: Draw | None) -> tuple[Path, ...]:
    """Plays *tasks* and, with groups, draws as many new tasks as groups with different rewards are missing, at most
    `groups.redraws` times. Returns the runs. Raises Interrupted."""
    settings = context.settings
    runs = [await _play(context, 1, tasks)]
    if draw is None or not settings.grouped:
        return tuple(runs)
    for number in range(2, settings.groups.redraws + 2):
        counts = count_groups(groups_of(read_runs(runs, rejected=settings.keeps_rejected).kept, settings.groups))
        missing = settings.rollouts.tasks - counts.informative
        further = await draw(number, missing) if missing > 0 else ()
        if not further:
            break
        context.log(
            f"phase {context.number}: {counts.informative} of {counts.groups} groups have different rewards, playing"
            f" {len(further)} more tasks"
        )
        runs.append(await _play(context, number, further))
    return tuple(runs)


async def _play(context: PhaseContext, number: int, tasks: Sequence[TaskRef]) -> Path:
    play = context.settings.rollouts
    return await play_run(
        context.folder / round_file("rollouts", number),
        rollout_config(context.policy, play, context.seed),
        context.policy,
        tasks,
        shared=context.settings.shared,
        listeners=context.listeners,
        log=context.log,
        server=play.server,
        ray=play.ray,
    )
