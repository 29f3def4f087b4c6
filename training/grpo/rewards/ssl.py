"""SSL (Wu et al. 2026): `R = C + α·Ŝ`, correctness and how near the answer is, in tiers (Eq. 2).

Where the paper contradicts itself:

* zones of a point: Eq. 5 sets a zone's value to its bound, App. B.1 to quarter steps; Eq. 4's intervals are empty for
  bounds that fall. Taken are App. B.1's zones and values.
* blocks of a grid: §3.3 counts cells and knows no value 0, App. B.2 takes shares and does; `counts` is the former.
* a grid's S is a mean of tiers already, and Alg. 1 would sort it into zones once more: it is taken as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from envs.core.record import Record
from training.grpo.rewards.answers import ParsedCompletion
from training.grpo.rewards.blocks import block_score, compared_grids
from training.grpo.rewards.geometry import SIGMA, Box, Point, ellipse_distance, gaussian_proximity
from training.grpo.rewards.registry import RewardEntry
from training.grpo.rewards.score import Score
from training.grpo.rewards.targets import (
    GridTarget,
    MazeTarget,
    PointTarget,
    StepTarget,
    SudokuTarget,
    Target,
    aimed_points,
    has_places,
    is_right,
)


class SslReward(Record):
    """The reward of SSL and of the two that its paper compares it with."""

    kind: Literal["ssl"] = "ssl"
    proximity: Literal["tiered", "continuous", "none"] = "tiered"
    """SSL; RL-Continuous, whose S is the proximity itself; RL-Binary, which is C alone."""
    alpha: float = Field(default=0.2, ge=0, le=1)
    """Weight of the proximity; the paper finds 0.1 to 0.5 to do."""
    zones: int = Field(default=4, ge=2, le=16)
    """K. The paper's is 4; for others, what App. B.1 and B.2 divide by four is divided by K."""
    blocks: Literal["shares", "counts"] = "shares"
    """Of grids: App. B.2, or §3.3."""
    maze_cells: Literal["all", "paths"] = "all"
    """That are compared: all, as in the paper, where any short walk matches most of a maze; or those on one of the two
    paths."""

    @property
    def max_reward(self) -> float:
        return 1.0 if self.proximity == "none" else 1.0 + self.alpha

    def of_group(self, target: Target, group: Sequence[ParsedCompletion]) -> list[Score]:
        """Each completion's reward; it does not depend on the others."""
        return [self._of(target, completion) for completion in group]

    def _of(self, target: Target, completion: ParsedCompletion) -> Score:
        correct = float(is_right(target, completion))
        near = proximity_score(target, completion)
        if self.proximity == "none":
            return Score(correct, {"correct": correct, "proximity": near})
        worth = self._worth(target, completion)
        return Score(correct + self.alpha * worth, {"correct": correct, "proximity": near, "worth": worth})

    def _worth(self, target: Target, completion: ParsedCompletion) -> float:
        """Ŝ, or S where it is not tiered."""
        tiered = self.proximity == "tiered"
        match target:
            case PointTarget() | StepTarget():
                return _of_place(target, completion, self._zone if tiered else gaussian_proximity)
            case MazeTarget() | SudokuTarget() | GridTarget():
                scale = ("tiered" if self.blocks == "shares" else "counts") if tiered else "continuous"
                return block_score(
                    *compared_grids(target, completion),
                    parts=_parts(target),
                    scale=scale,
                    zones=self.zones,
                    marked_only=isinstance(target, MazeTarget) and self.maze_cells == "paths",
                )

    def _zone(self, point: Point, box: Box) -> float:
        return zone_value(point, box, self.zones)


def proximity_score(target: Target, completion: ParsedCompletion) -> float:
    """S(τ), untiered, 0 to 1: the Gaussian of a point (App. B.1), the matching cells of a grid, 0 or 1 of an action
    that aims at nothing (Table 5)."""
    match target:
        case PointTarget() | StepTarget():
            return _of_place(target, completion, gaussian_proximity)
        case MazeTarget() | SudokuTarget() | GridTarget():
            return block_score(*compared_grids(target, completion), parts=_parts(target), scale="continuous")


def zone_value(point: Point, box: Box, zones: int = 4) -> float:
    """The value of the zone of *box* that *point* is in (App. B.1): with four zones 1, 0.75 and 0.5 within one, two and
    three standard deviations, 0.25 in the corners beyond, 0 outside.

    With K zones the K - 1 inner bounds share the way to three standard deviations evenly, and values the way to 0.
    """
    if not box.holds(point):
        return 0.0
    deviations = ellipse_distance(point, box) / SIGMA
    step = 3 / (zones - 1)
    zone = max(1, math.ceil(deviations / step - 1e-9))  # a point on a bound belongs to the inner zone, as φ ≥ τ says
    return (zones + 1 - min(zone, zones)) / zones


def _of_place(
    target: PointTarget | StepTarget, completion: ParsedCompletion, worth: Callable[[Point, Box], float]
) -> float:
    if not has_places(target):
        return float(is_right(target, completion))
    points = aimed_points(target, completion)
    return sum(worth(one.point, one.place.region) for one in points) / len(points) if points else 0.0


def _parts(target: MazeTarget | SudokuTarget | GridTarget) -> int:
    """Blocks along a side: three, and a sudoku's own squares."""
    return math.isqrt(len(target.solution)) if isinstance(target, SudokuTarget) else 3


ENTRY = RewardEntry(
    SslReward,
    {
        "group": 8,
        "answer_tokens": 128,  # a sudoku of 9 x 9 takes 89
        "kl": 0.1,
        "scale_advantages": False,
        "optimization": {"learning_rate": 1e-6, "batch_rows": 128, "warmup": 0.05, "weight_decay": 0.01},
    },
)
"""Constants of Table 6."""
