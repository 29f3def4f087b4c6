"""The reward of SSL (Wu et al. 2026), `R = C + α·Ŝ` (Eq. 2): correctness plus tiered proximity.

Choices where the paper contradicts itself:

* zones of a point: Eq. 5 sets a zone's value to its bound, App. B.1 to quarter steps; Eq. 4's intervals are empty for
  decreasing bounds. App. B.1's zones and values are used.
* blocks of a grid: §3.3 counts cells and has no value 0 (`counts`); App. B.2 uses shares and has one (`shares`).
* a grid's S is already a mean of tiers. Alg. 1 would assign it to zones again; it is used unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, Literal

from pydantic import Field

from envs.core.record import Record
from models.vision.answers import ParsedCompletion
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

NEAR_MISS: Final = 0.7
"""App. H.1: wrong answers with a proximity above this value indicate reward hacking."""


class SslReward(Record):
    """The rewards of SSL and of the two baselines of its paper."""

    kind: Literal["ssl"] = "ssl"
    proximity: Literal["tiered", "continuous", "none"] = "tiered"
    """`tiered`: SSL. `continuous`: RL-Continuous, with S as the proximity. `none`: RL-Binary, C only."""
    alpha: float = Field(default=0.2, ge=0, le=1)
    """Weight of the proximity. The paper finds that 0.1 to 0.5 work."""
    zones: int = Field(default=4, ge=2, le=16)
    """K, the number of tiers; the paper uses 4. Other values replace the four of App. B.1 and B.2."""
    blocks: Literal["shares", "counts"] = "shares"
    """Block values of grids: App. B.2 or §3.3."""
    maze_cells: Literal["all", "paths"] = "all"
    """Cells of a maze that are compared: all, as in the paper, where any short path matches most of a maze; or those on
    one of the two paths."""

    @property
    def max_reward(self) -> float:
        return 1.0 if self.proximity == "none" else 1.0 + self.alpha

    def of_group(self, target: Target, group: Sequence[ParsedCompletion]) -> list[Score]:
        """Scores each completion, independently of the others."""
        return [self._of(target, completion) for completion in group]

    def _of(self, target: Target, completion: ParsedCompletion) -> Score:
        correct = float(is_right(target, completion))
        near = proximity_score(target, completion)
        if self.proximity == "none":
            return Score(correct, {"correct": correct, "proximity": near})
        worth = self._worth(target, completion)
        return Score(correct + self.alpha * worth, {"correct": correct, "proximity": near, "worth": worth})

    def _worth(self, target: Target, completion: ParsedCompletion) -> float:
        """Ŝ, or S if it is not tiered."""
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
    """S(τ), untiered, 0 to 1: the Gaussian of a point (App. B.1), the matching cells of a grid, 0 or 1 for an action
    without a point (Table 5)."""
    match target:
        case PointTarget() | StepTarget():
            return _of_place(target, completion, gaussian_proximity)
        case MazeTarget() | SudokuTarget() | GridTarget():
            return block_score(*compared_grids(target, completion), parts=_parts(target), scale="continuous")


def zone_value(point: Point, box: Box, zones: int = 4) -> float:
    """Value of the zone of *box* that contains *point* (App. B.1). Four zones: 1, 0.75 and 0.5 within one, two and
    three standard deviations, 0.25 in the corners, 0 outside.

    K zones: the K - 1 inner bounds divide three standard deviations evenly; the values divide 1 to 0 evenly.
    """
    if not box.holds(point):
        return 0.0
    deviations = ellipse_distance(point, box) / SIGMA
    step = 3 / (zones - 1)
    zone = max(1, math.ceil(deviations / step - 1e-9))  # a point on a bound belongs to the inner zone (φ ≥ τ)
    return (zones + 1 - min(zone, zones)) / zones


def _of_place(
    target: PointTarget | StepTarget, completion: ParsedCompletion, worth: Callable[[Point, Box], float]
) -> float:
    if not has_places(target):
        return float(is_right(target, completion))
    points = aimed_points(target, completion)
    return sum(worth(aim.point, aim.place.region) for aim in points) / len(points) if points else 0.0


def _parts(target: MazeTarget | SudokuTarget | GridTarget) -> int:
    """Blocks per side: three, or the number of a sudoku's squares."""
    return math.isqrt(len(target.solution)) if isinstance(target, SudokuTarget) else 3


ENTRY = RewardEntry(
    SslReward,
    {
        "group": 8,
        "answer_tokens": 128,  # a 9 x 9 sudoku has 89 tokens
        "kl": 0.1,
        "scale_advantages": False,
        "optimization": {
            "learning_rate": 1e-6,
            "batch_rows": 128,
            "warmup": 0.05,
            "weight_decay": 0.01,
            "epochs": 10,
            "clip": 1.0,
        },
        "compute": {"max_tokens": 2_048},
    },
)
"""Constants of Table 6; §4.1 says "over three epochs"."""
