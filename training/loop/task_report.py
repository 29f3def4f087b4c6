"""Reports a phase's effect on each task: the critic's values, the advantages, and the change of log-probabilities."""

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
from training.data.columns import Column
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.loop.data import read_episodes


class OutcomeStats(Record):
    """The actor's rows of a task's successes, or of its failures."""

    rows: int
    value: float
    """Mean V of the states. A large difference between successes and failures of one task means that the critic has
    memorized the episodes: see `value.folds`."""
    advantage: float
    """Mean; the objective's target change of log-probabilities, times β."""
    gain: float | None
    """Mean change of the log-probability by the actor's stage; None without rescoring."""


class TaskLine(Record):
    """One task of a phase, including its replayed episodes."""

    task: str
    """`suite/name`."""
    episodes: int
    solved: int
    on_successes: OutcomeStats | None
    on_failures: OutcomeStats | None
    auroc: float | None = None
    """Probability that V is higher in a state of a success than in one of a failure, with ties counted half; None
    without both. 0.5: the critic cannot separate them."""


ALL = "all"
"""Name of the line of all tasks. Its `auroc` also reflects that some tasks are easier than others."""


def by_task(phase: Path, *, rescore: bool = False) -> tuple[TaskLine, ...]:
    """The lines of a phase with a trained actor, by name, `ALL` last. *rescore* loads the new actor and scores every
    row again.

    Raises BadInput where *phase* is no such folder.
    """
    if not (phase / "actor" / "model").exists():
        raise BadInput(f"{str(phase)!r} is not a phase with a trained actor")
    rows, columns = read_rows(phase / "actor" / "rows.parquet")
    new, replayed = read_episodes(phase)
    episodes = new + replayed
    after = _rescored(phase, rows) if rescore else None
    by_name: dict[str, dict[bool, list[_RowNumbers]]] = defaultdict(lambda: defaultdict(list))
    for place, row in enumerate(rows):
        episode = episodes[row.trajectory]
        gain = None if after is None else after[place] - columns[Column.REFERENCE][place]
        numbers = _RowNumbers(columns[Column.VALUE][place], columns[Column.ADVANTAGE][place], gain)
        for name in (_name(episode), ALL):
            by_name[name][episode.success].append(numbers)
    counts: dict[str, list[bool]] = defaultdict(list)
    for episode in episodes:
        for name in (_name(episode), ALL):
            counts[name].append(episode.success)
    return tuple(
        TaskLine(
            task=name,
            episodes=len(counts[name]),
            solved=sum(counts[name]),
            on_successes=_stats(by_name[name][True]),
            on_failures=_stats(by_name[name][False]),
            auroc=_auroc(by_name[name][True], by_name[name][False]),
        )
        for name in (*sorted(counts.keys() - {ALL}), ALL)
    )


class _RowNumbers(NamedTuple):
    """The numbers of one row."""

    value: float
    advantage: float
    gain: float | None


def _name(episode: Trajectory) -> str:
    return f"{episode.task.suite}/{episode.task.name}"


def _rescored(phase: Path, rows: Sequence[Row]) -> tuple[float, ...]:
    """Scores *rows* with the new actor, in the precision of its references."""
    from training.engine.scoring import score
    from training.engine.stage_jobs import read_job

    compute = read_job(phase / "actor").compute
    return score("actions", phase / "actor" / "model", rows, compute)


def _stats(rows: Sequence[_RowNumbers]) -> OutcomeStats | None:
    if not rows:
        return None
    gains = [row.gain for row in rows if row.gain is not None]
    return OutcomeStats(
        rows=len(rows),
        value=fmean(row.value for row in rows),
        advantage=fmean(row.advantage for row in rows),
        gain=fmean(gains) if gains else None,
    )


def _auroc(successes: Sequence[_RowNumbers], failures: Sequence[_RowNumbers]) -> float | None:
    """Mann and Whitney's U as a share of all pairs."""
    if not successes or not failures:
        return None
    ranks = average_ranks([row.value for row in (*successes, *failures)])[: len(successes)]
    return float(ranks.sum() - len(successes) * (len(successes) + 1) / 2) / (len(successes) * len(failures))
