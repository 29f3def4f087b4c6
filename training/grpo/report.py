"""What a GRPO run reported while it trained: its sampled completions, update by update."""

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
"""Of a table: neighbouring reports are put together, which also evens out single batches."""


class TrainingReport(Record):
    """Sampled completions of some updates, means over them; None where the reward does not tell."""

    first: int
    last: int
    """Updates, from 1."""
    reward: float | None
    """None where no reward was finite."""
    correct: float | None = None
    """Share that is right, 0 to 1."""
    proximity: float | None = None
    kl: float | None = None
    """Divergence from the start, nats a token; None where its weight is 0."""
    tokens: float | None = None
    """Mean length."""
    nonfinite_rows: int = 0
    """Completions that were left out: their rewards are NaN or infinite. A sum, not a mean."""
    equal_groups: int = 0
    """Groups whose rewards are equal, so that there is nothing to learn from them. A sum."""
    groups: int = 0
    """All groups; 0 in logs of versions that did not count them."""


_NAMES: Final = {
    "reward": "reward",
    "correct": "part/correct",
    "proximity": "part/proximity",
    "kl": "kl",
    "tokens": "completions/mean_length",
}
"""How TRL's log calls them."""
_COUNTS: Final = ("nonfinite_rows", "equal_groups", "groups")


def read_reports(out: Path) -> tuple[TrainingReport, ...]:
    """Every report of the run in *out*, the oldest first; of one that has not ended, up to its last checkpoint."""
    found: list[TrainingReport] = []
    for line in _log(out):
        if "reward" not in line:
            continue
        told = {name: line[key] for name, key in _NAMES.items() if line.get(key) is not None}
        counts = {name: int(line.get(name) or 0) for name in _COUNTS}
        first = found[-1].last + 1 if found else 1
        found.append(TrainingReport(first=first, last=int(line["step"]), **{"reward": None, **told}, **counts))
    return tuple(found)


def merge_reports(reports: Sequence[TrainingReport], most: int = MOST_ROWS) -> tuple[TrainingReport, ...]:
    """At most *most* rows, each of as many neighbouring *reports*, but for the last."""
    size = -(-len(reports) // most) if reports else 1
    return tuple(_mean(reports[at : at + size]) for at in range(0, len(reports), size))


def _mean(reports: Sequence[TrainingReport]) -> TrainingReport:
    def mean(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return fmean(known) if known else None

    return TrainingReport(
        first=reports[0].first,
        last=reports[-1].last,
        reward=mean(one.reward for one in reports),
        correct=mean(one.correct for one in reports),
        proximity=mean(one.proximity for one in reports),
        kl=mean(one.kl for one in reports),
        tokens=mean(one.tokens for one in reports),
        nonfinite_rows=sum(one.nonfinite_rows for one in reports),
        equal_groups=sum(one.equal_groups for one in reports),
        groups=sum(one.groups for one in reports),
    )


def _log(out: Path) -> list[dict[str, Any]]:
    try:
        return json.loads((out / "log.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        pass  # it is written when the run ends
    checkpoints = (out / "checkpoints").glob(f"{PREFIX_CHECKPOINT_DIR}-*/{TRAINER_STATE_NAME}")
    for path in sorted(checkpoints, key=lambda one: -int(one.parent.name.rpartition("-")[2])):
        try:
            return json.loads(path.read_text(encoding="utf-8"))["log_history"]
        except (OSError, ValueError, KeyError):
            continue  # killed while it was written: the one before is whole
    return []
