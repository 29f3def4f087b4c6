"""From critics' words to what the actor learns from: advantages, checked, and the rows that an arm keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.engine.trainer import TrainingDiverged

RowSelection = Literal["all", "successes", "positive", "digirl"]

DIGIRL_SHARE = 0.5
"""Of the trajectories, by how far their outcome is above the value of their first state. The published code takes the
best tenth of an online batch; with as few rollouts as here that would be a handful."""


MAX_NONFINITE = 0.1
"""Share of rows whose advantage may be NaN or infinite; they are left out. More of them are a diverged critic."""


def check_advantages(
    advantages: Sequence[float], rows: Sequence[Row], trajectories: Sequence[Trajectory], limit: float
) -> int:
    """How many advantages are NaN or infinite; :func:`select_rows` leaves those rows out.

    Raises TrainingDiverged naming the first action whose advantage is beyond *limit*, or the first that is not finite
    where these are more than `MAX_NONFINITE` of all.
    """
    nonfinite = sum(not math.isfinite(advantage) for advantage in advantages)
    too_many = nonfinite > MAX_NONFINITE * len(rows)
    for advantage, row in zip(advantages, rows, strict=True):
        if abs(advantage) > limit if math.isfinite(advantage) else too_many:
            of = trajectories[row.trajectory]
            raise TrainingDiverged(
                f"the advantage of step {of.decisions[row.time].step} of episode {of.episode_id} (run {of.run_id}) "
                f"is {advantage:g}, beyond {limit:g}: the critics have diverged"
            )
    return nonfinite


def select_rows(
    keep: RowSelection,
    rows: Sequence[Row],
    trajectories: Sequence[Trajectory],
    advantages: Sequence[float],
    values: Sequence[float],
) -> list[int]:
    """Places of the rows that the actor sees, in their order. A row whose advantage is not finite is never one.

    `digirl`: a positive advantage, in a trajectory of the better `DIGIRL_SHARE` by outcome − V(s_0): the step filter
    and the instruction filter of Bai et al. 2024, with the value critic in place of a second one.
    """
    places = [place for place, advantage in enumerate(advantages) if math.isfinite(advantage)]
    match keep:
        case "all":
            return places
        case "successes":
            return [place for place in places if trajectories[rows[place].trajectory].success]
        case "positive":
            return [place for place in places if advantages[place] > 0]
        case "digirl":
            better = _better(rows, trajectories, values)
            return [place for place in places if advantages[place] > 0 and rows[place].trajectory in better]


def _better(rows: Sequence[Row], trajectories: Sequence[Trajectory], values: Sequence[float]) -> set[int]:
    first = {row.trajectory: value for row, value in zip(rows, values, strict=True) if row.time == 0}
    gains = {index: float(trajectories[index].success) - value for index, value in first.items()}
    ordered = sorted(gains, key=lambda index: (-gains[index], index))
    return set(ordered[: math.ceil(len(ordered) * DIGIRL_SHARE)])
