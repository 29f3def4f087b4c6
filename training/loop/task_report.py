"""What a phase taught about each task: what the critic expected, what the actor was told, and what it made of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from envs.core.errors import BadInput
from envs.core.record import Record
from judges.statistics import average_ranks
from training.data.cache import read_rows
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.loop.data import read_episodes


class OutcomeStats(Record):
    """The actor's rows of a task's successes, or of its failures."""

    rows: int
    value: float
    """Mean V of the states. Far apart for successes and failures of one task, the critic has learned the episodes by
    heart: see `value.folds`."""
    advantage: float
    """Mean; what the objective asks of the log-probabilities, times β."""
    gain: float | None
    """Mean change of the log-probability by the actor's stage; None where it was not scored again."""


class TaskLine(Record):
    """One task of a phase, its replayed episodes included."""

    task: str
    """`suite/name`."""
    episodes: int
    solved: int
    on_successes: OutcomeStats | None
    on_failures: OutcomeStats | None
    auroc: float | None = None
    """How often V is higher in a state of a success than in one of a failure, equal ones half; None without both.
    0.5: the critic cannot tell them apart."""


ALL = "all"
"""Name of the line of all tasks together: its `auroc` also counts that some tasks are easier than others."""


def by_task(phase: Path, *, rescore: bool = False) -> tuple[TaskLine, ...]:
    """Of a phase whose actor has learned, by name, the line `ALL` last. *rescore* loads the new actor and scores every
    row again.

    Raises BadInput where *phase* holds no such phase.
    """
    if not (phase / "actor" / "model").exists():
        raise BadInput(f"{str(phase)!r} is no phase whose actor has learned")
    rows, columns = read_rows(phase / "actor" / "rows.parquet")
    new, replayed = read_episodes(phase)
    episodes = new + replayed
    after = _scored(phase, rows) if rescore else None
    found: dict[str, dict[bool, list[_Said]]] = defaultdict(lambda: defaultdict(list))
    for place, row in enumerate(rows):
        episode = episodes[row.trajectory]
        gain = None if after is None else after[place] - columns["reference"][place]
        told = _Said(columns["value"][place], columns["advantage"][place], gain)
        for name in (_name(episode), ALL):
            found[name][episode.success].append(told)
    counts: dict[str, list[bool]] = defaultdict(list)
    for episode in episodes:
        for name in (_name(episode), ALL):
            counts[name].append(episode.success)
    return tuple(
        TaskLine(
            task=name,
            episodes=len(counts[name]),
            solved=sum(counts[name]),
            on_successes=_told(found[name][True]),
            on_failures=_told(found[name][False]),
            auroc=_auroc(found[name][True], found[name][False]),
        )
        for name in (*sorted(counts.keys() - {ALL}), ALL)
    )


class _Said(NamedTuple):
    """Of one row."""

    value: float
    advantage: float
    gain: float | None


def _name(episode: Trajectory) -> str:
    return f"{episode.task.suite}/{episode.task.name}"


def _scored(phase: Path, rows: Sequence[Row]) -> tuple[float, ...]:
    """By the new actor, in the precision of its references."""
    from training.engine.scoring import score
    from training.engine.stage_jobs import read_job

    compute = read_job(phase / "actor").compute
    return score("actions", phase / "actor" / "model", rows, compute)


def _told(rows: Sequence[_Said]) -> OutcomeStats | None:
    if not rows:
        return None
    gains = [row.gain for row in rows if row.gain is not None]
    return OutcomeStats(
        rows=len(rows),
        value=fmean(row.value for row in rows),
        advantage=fmean(row.advantage for row in rows),
        gain=fmean(gains) if gains else None,
    )


def _auroc(won: Sequence[_Said], lost: Sequence[_Said]) -> float | None:
    """Mann and Whitney's U as a share of all pairs."""
    if not won or not lost:
        return None
    ranks = average_ranks([row.value for row in (*won, *lost)])[: len(won)]
    return float(ranks.sum() - len(won) * (len(won) + 1) / 2) / (len(won) * len(lost))
