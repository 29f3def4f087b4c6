"""Reads the training log of a GRPO run: metrics of sampled completions by update."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from envs.core.record import Record

MOST_ROWS: Final = 12
"""Maximum rows of a table. Adjacent reports are averaged, which also smooths single batches."""


class TrainingReport(Record):
    """Mean metrics of the completions sampled in some updates; None if the reward does not report a metric."""

    first: int
    last: int
    """First and last update, from 1."""
    reward: float | None
    """None if no reward was finite."""
    correct: float | None = None
    """Share of correct answers, 0 to 1."""
    proximity: float | None = None
    kl: float | None = None
    """KL divergence from the start, nats per token; None if its weight is 0."""
    tokens: float | None = None
    """Mean completion tokens."""
    nonfinite_rows: int = 0
    """Excluded completions with a NaN or infinite reward; a sum, not a mean."""
    equal_groups: int = 0
    """Groups with equal rewards, which have no learning signal; a sum."""
    groups: int = 0
    """All groups; 0 in logs of versions that did not count them; a sum."""


_NAMES: Final = {
    "reward": "reward",
    "correct": "part/correct",
    "proximity": "part/proximity",
    "kl": "kl",
    "tokens": "completions/mean_length",
}
"""Keys of these metrics in TRL's log."""
_COUNTS: Final = ("nonfinite_rows", "equal_groups", "groups")


def read_reports(out: Path) -> tuple[TrainingReport, ...]:
    """Reads the reports of the run in *out*, oldest first; up to the last checkpoint if it is unfinished."""
    reports: list[TrainingReport] = []
    for line in _log(out):
        if "reward" not in line:
            continue
        metrics = {name: line[key] for name, key in _NAMES.items() if line.get(key) is not None}
        counts = {name: int(line.get(name) or 0) for name in _COUNTS}
        first = reports[-1].last + 1 if reports else 1
        reports.append(TrainingReport(first=first, last=int(line["step"]), **{"reward": None, **metrics}, **counts))
    return tuple(reports)


def merge_reports(reports: Sequence[TrainingReport], limit: int = MOST_ROWS) -> tuple[TrainingReport, ...]:
    """Averages adjacent *reports* to at most *limit* rows of equally many reports; the last row can have fewer."""
    size = -(-len(reports) // limit) if reports else 1
    return tuple(_mean(reports[at : at + size]) for at in range(0, len(reports), size))


def _mean(reports: Sequence[TrainingReport]) -> TrainingReport:
    def mean(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return fmean(known) if known else None

    return TrainingReport(
        first=reports[0].first,
        last=reports[-1].last,
        reward=mean(report.reward for report in reports),
        correct=mean(report.correct for report in reports),
        proximity=mean(report.proximity for report in reports),
        kl=mean(report.kl for report in reports),
        tokens=mean(report.tokens for report in reports),
        nonfinite_rows=sum(report.nonfinite_rows for report in reports),
        equal_groups=sum(report.equal_groups for report in reports),
        groups=sum(report.groups for report in reports),
    )


def _log(out: Path) -> list[dict[str, Any]]:
    try:
        return json.loads((out / "log.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        pass  # written at the end of the run
    checkpoints = (out / "checkpoints").glob(f"{PREFIX_CHECKPOINT_DIR}-*/{TRAINER_STATE_NAME}")
    for path in sorted(checkpoints, key=lambda path: -int(path.parent.name.rpartition("-")[2])):
        try:
            return json.loads(path.read_text(encoding="utf-8"))["log_history"]
        except (OSError, ValueError, KeyError):
            continue  # killed while writing: use the previous checkpoint
    return []
