"""Value filter of WebRL's curriculum: keeps tasks whose start value is neither too low nor too high.

WebRL lets a large model rewrite failed instructions and intends to keep those whose start value is between 0.05 and
0.75, but its published code never calls the filter. Here the filter applies to the pool and to variants. Only tasks
with a checker are rewritten (:mod:`training.loop.curriculum.variants`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from training.loop.curriculum.pool import Candidate
from training.loop.curriculum.settings import ValueBand

Value = Callable[[Sequence[Candidate]], Sequence[float]]
"""The critic's V of each task's start, in [0, 1], in the order of the tasks; from the instruction, without a page."""


class ValueFilterCounts(NamedTuple):
    kept: tuple[Candidate, ...]
    """In the order of the input."""
    too_hard: int
    too_easy: int


def filter_by_value(tasks: Sequence[Candidate], values: Sequence[float], band: ValueBand) -> ValueFilterCounts:
    """The *tasks* whose value lies in *band*, ends included.

    Raises ValueError unless there is one value in [0, 1] for each task.
    """
    if len(values) != len(tasks):
        raise ValueError(f"{len(tasks)} tasks need as many values, got {len(values)}")
    wrong = next((value for value in values if not (math.isfinite(value) and 0 <= value <= 1)), None)
    if wrong is not None:
        raise ValueError(f"a value must lie in [0, 1], not {wrong!r}")
    kept = tuple(task for task, value in zip(tasks, values, strict=True) if band.low <= value <= band.high)
    too_hard = sum(value < band.low for value in values)
    return ValueFilterCounts(kept, too_hard, len(tasks) - len(kept) - too_hard)
