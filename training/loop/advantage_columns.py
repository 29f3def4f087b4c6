"""Checks advantages and selects the rows that the actor is trained on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from training.data.columns import Columns
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.engine.trainer import TrainingDiverged
from training.loop.metrics import CriticScores, GroupMetrics
from training.mira.credit import FailuresFrom, first_counted

RowSelection = Literal["all", "successes", "positive", "digirl"]

DIGIRL_SHARE = 0.5
"""Share of trajectories that are kept, ranked by outcome minus the value of the first state. The published code takes
the best tenth of an online batch, which would be too few here."""


MAX_NONFINITE = 0.1
"""Maximum share of rows with a NaN or infinite advantage; they are left out. A larger share means a diverged critic."""


@dataclass(frozen=True, slots=True)
class ActorRows:
    """What the actor is trained on, with what is reported about it."""

    rows: tuple[Row, ...]
    columns: Columns
    advantages: Sequence[float]
    """Of the actor's rows or of all rows of the phase."""
    outcomes: Sequence[bool]
    """Whether the trajectory of each of the `advantages` succeeded."""
    nonfinite: int = 0
    potential: CriticScores | None = None
    value: CriticScores | None = None
    groups: GroupMetrics | None = None


def check_advantages(
    advantages: Sequence[float], rows: Sequence[Row], trajectories: Sequence[Trajectory], limit: float
) -> int:
    """Counts NaN and infinite advantages; :func:`select_rows` leaves those rows out.

    Raises TrainingDiverged for an advantage beyond *limit*, and where more than `MAX_NONFINITE` of all are not finite.
    The message names the first such action.
    """
    nonfinite = sum(not math.isfinite(advantage) for advantage in advantages)
    too_many = nonfinite > MAX_NONFINITE * len(rows)
    for advantage, row in zip(advantages, rows, strict=True):
        if abs(advantage) > limit if math.isfinite(advantage) else too_many:
            episode = trajectories[row.trajectory]
            raise TrainingDiverged(
                f"the advantage of step {episode.decisions[row.time].step} of episode {episode.episode_id} "
                f"(run {episode.run_id}) is {advantage:g}, beyond {limit:g}: the critics have diverged; lower "
                "their learning rates"
            )
    return nonfinite


def select_rows(
    keep: RowSelection,
    rows: Sequence[Row],
    trajectories: Sequence[Trajectory],
    advantages: Sequence[float],
    values: Sequence[float],
    *,
    failures_from: FailuresFrom = "start",
) -> list[int]:
    """Indices of the rows that the actor is trained on, in their order. Rows without a finite advantage are excluded.

    `digirl`: rows with a positive advantage in the best `DIGIRL_SHARE` of trajectories by outcome − V(s_0). These are
    the step filter and the instruction filter of Bai et al. 2024, with the value critic in place of a second critic.
    *failures_from*: failures' rows before that step are excluded, too.
    """
    first = [first_counted(trajectory, failures_from) for trajectory in trajectories]
    places = [
        place
        for place, (row, advantage) in enumerate(zip(rows, advantages, strict=True))
        if math.isfinite(advantage) and row.time >= first[row.trajectory]
    ]
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
