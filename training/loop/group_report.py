"""Reports by task what became of the groups of an M-GRPO run: equal rewards in every group teach nothing."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import fmean

from envs.core.errors import BadInput
from envs.core.record import Record
from training.data.cache import read_trajectories
from training.loop.loop import CONFIG
from training.loop.parts import read_record
from training.loop.settings import LoopSettings
from training.loop.task_report import ALL
from training.mira.group_advantages import Group, GroupCounts, count_groups, groups_of


class TaskGroups(Record):
    """The groups of one task over the phases of a run."""

    task: str
    """`suite/name`."""
    counts: GroupCounts
    first_reward: float | None
    """Mean reward of the episodes in the first half of the phases (rounded up); None without episodes."""
    last_reward: float | None
    """The same in the second half."""


def groups_by_task(run: Path) -> tuple[TaskGroups, ...]:
    """The lines of the tasks of the M-GRPO run in the folder *run*, by name, `ALL` last. They change while it plays.

    Raises BadInput where *run* is no such folder, or has finished no phase's play.
    """
    settings = read_record(run / CONFIG, LoopSettings)
    if settings.arm != "mgrpo":
        raise BadInput(f"{str(run)!r} is a run of the arm {settings.arm}: only mgrpo has groups")
    files = sorted(run.glob("phase-*/data/new.parquet"), key=lambda file: _number(file.parts[-3]))
    if not files:
        raise BadInput(f"{str(run)!r} has finished no phase's play yet")
    half = (len(files) + 1) // 2
    halves: dict[str, tuple[list[Group], list[Group]]] = defaultdict(lambda: ([], []))
    for place, file in enumerate(files):
        for group in groups_of(read_trajectories(file), settings.groups):
            for name in (f"{group.task.suite}/{group.task.name}", ALL):
                halves[name][place >= half].append(group)
    names = [*sorted(halves.keys() - {ALL}), ALL]
    return tuple(
        TaskGroups(
            task=name,
            counts=count_groups([*halves[name][0], *halves[name][1]]),
            first_reward=_mean_reward(halves[name][0]),
            last_reward=_mean_reward(halves[name][1]),
        )
        for name in names
    )


def _number(phase: str) -> int:
    return int(phase.removeprefix("phase-"))


def _mean_reward(groups: list[Group]) -> float | None:
    rewards = [reward for group in groups for reward in group.rewards]
    return fmean(rewards) if rewards else None
