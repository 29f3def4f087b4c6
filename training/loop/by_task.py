"""What a phase taught about each task: what the critic expected, what the actor was told, and what it made of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from envs.errors import BadInput
from envs.record import Record
from training.data.cache import read_rows, read_trajectories
from training.data.rows import Row


class Told(Record):
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
    on_successes: Told | None
    on_failures: Told | None


def by_task(phase: Path, *, rescore: bool = False, pack_tokens: int = 512) -> tuple[TaskLine, ...]:
    """Of a phase whose actor has learned, by name. *rescore* loads the new actor and scores every row again.

    Raises BadInput where *phase* holds no such phase.
    """
    if not (phase / "actor" / "model").exists():
        raise BadInput(f"{str(phase)!r} is no phase whose actor has learned")
    rows, columns = read_rows(phase / "actor" / "rows.parquet")
    episodes = [one for name in ("new", "replayed") for one in read_trajectories(phase / "data" / f"{name}.parquet")]
    after = _scored(phase, rows, pack_tokens) if rescore else None
    found: dict[str, dict[bool, list[tuple[float, float, float | None]]]] = defaultdict(lambda: defaultdict(list))
    for place, row in enumerate(rows):
        episode = episodes[row.trajectory]
        gain = None if after is None else after[place] - columns["reference"][place]
        told = (columns["value"][place], columns["advantage"][place], gain)
        found[f"{episode.task.suite}/{episode.task.name}"][episode.success].append(told)
    counts: dict[str, list[bool]] = defaultdict(list)
    for episode in episodes:
        counts[f"{episode.task.suite}/{episode.task.name}"].append(episode.success)
    return tuple(
        TaskLine(
            task=task,
            episodes=len(won),
            solved=sum(won),
            on_successes=_told(found[task][True]),
            on_failures=_told(found[task][False]),
        )
        for task, won in sorted(counts.items())
    )


def _scored(phase: Path, rows: Sequence[Row], pack_tokens: int) -> tuple[float, ...]:
    from training.mira.annotate import score_actions
    from training.stages.checkpoints import load_policy

    return score_actions(load_policy(phase / "actor" / "model")[0].eval(), rows, pack_tokens)[0]


def _told(rows: list[tuple[float, float, float | None]]) -> Told | None:
    if not rows:
        return None
    gains = [gain for _, _, gain in rows if gain is not None]
    return Told(
        rows=len(rows),
        value=fmean(value for value, _, _ in rows),
        advantage=fmean(advantage for _, advantage, _ in rows),
        gain=fmean(gains) if gains else None,
    )
