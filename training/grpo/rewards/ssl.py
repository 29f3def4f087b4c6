"""The reward of SSL (Wu et al. 2026), `R = C + α·Ŝ` (Eq. 2): correctness plus tiered proximity.

Choices where the paper contradicts itself:

* zones of a point: Eq. 5 sets a zone's value to its bound, App. B.1 to quarter steps; Eq. 4's intervals are empty for
  decreasing bounds. App. B.1's zones and values are used.
* blocks of a grid: §3.3 counts cells and has no value 0 (`counts`); App. B.2 uses shares and has one (`shares`).
* a grid's S is already a mean of tiers. Alg. 1 would assign it to zones again; it is used unchanged.
* the continuous rival of grids: §4.1 says block-wise shares, §4.2 matched cells of the whole grid (`whole`).
* the continuous rival of places "from GUI-G²" (§4.1): `continuous` is S in place of Ŝ; `gui_g2` is the reward of the
  GUI-G² paper (Tang et al. 2025, arXiv 2507.15846), see :func:`gui_g2_proximity`, which has no C (`verifier = false`).

A trajectory of several steps has the tier of its mean proximity (Eq. 3 and 4), see :func:`training.tiers.tier_value`;
episodes are rewarded with it in :mod:`training.mira.episode_rewards`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, Literal

from pydantic import Field, model_validator

from envs.core.record import Record
from models.vision.answers import ParsedCompletion
from training.grpo.rewards.blocks import block_score, compared_grids
from training.grpo.rewards.geometry import (
    SIGMA,
    Box,
    Point,
    ellipse_distance,
    gaussian_coverage,
    gaussian_proximity,
    unbounded_gaussian,
)
from training.grpo.rewards.registry import RewardEntry
from training.grpo.rewards.score import Score
from training.grpo.rewards.targets import (
    ChoiceTarget,
    GridTarget,
    MazeTarget,
    OptionTarget,
    PointTarget,
    StepTarget,
    SudokuTarget,
    Target,
    TextTarget,
    aimed_points,
    has_places,
    is_right,
    parse_box,
    similarity,
)
from training.tiers import zone_at

NEAR_MISS: Final = 0.7
"""App. H.1: wrong answers with a proximity above this value indicate reward hacking."""


class SslReward(Record):
    """The rewards of SSL and of the two baselines of its paper."""

    kind: Literal["ssl"] = "ssl"
    proximity: Literal["tiered", "continuous", "gui_g2", "none"] = "tiered"
    """`tiered`: SSL. `continuous`: RL-Continuous, with S as the proximity. `gui_g2`: the reward of GUI-G², for places;
    grids have S. `none`: RL-Binary, C only."""
    verifier: bool = True
    """Add C, the correctness. The reward of GUI-G² has none."""
    alpha: float = Field(default=0.2, ge=0, le=1)
    """Weight of the proximity. The paper finds that 0.1 to 0.5 work."""
    zones: int = Field(default=4, ge=2, le=16)
    """K, the number of tiers; the paper uses 4. Other values replace the four of App. B.1 and B.2."""
    blocks: Literal["shares", "counts", "whole"] = "shares"
    """Block values of grids: App. B.2 or §3.3; `whole`: the grid is one block, as in the continuous rival of §4.2."""
    maze_cells: Literal["all", "paths"] = "all"
    """Cells of a maze that are compared: all, as in the paper, where any short path matches most of a maze; or those on
    one of the two paths."""

    @model_validator(mode="after")
    def _rewards_something(self) -> SslReward:
        if not self.verifier and (self.proximity == "none" or not self.alpha):
            raise ValueError("verifier false leaves only the proximity, which is off: every reward would be 0")
        return self

    @property
    def max_reward(self) -> float:
        return float(self.verifier) + (0.0 if self.proximity == "none" else self.alpha)

    def of_group(self, target: Target, group: Sequence[ParsedCompletion]) -> list[Score]:
        """Scores each completion, independently of the others."""
        return [self._of(target, completion) for completion in group]

    def _of(self, target: Target, completion: ParsedCompletion) -> Score:
        correct = float(is_right(target, completion))
        near = proximity_score(target, completion)
        verified = correct if self.verifier else 0.0
        if self.proximity == "none":
            return Score(verified, {"correct": correct, "proximity": near})
        worth = self._worth(target, completion)
        return Score(verified + self.alpha * worth, {"correct": correct, "proximity": near, "worth": worth})

    def _worth(self, target: Target, completion: ParsedCompletion) -> float:
        """Ŝ, or S if it is not tiered."""
        tiered = self.proximity == "tiered"
        match target:
            case PointTarget() | StepTarget() if self.proximity == "gui_g2":
                return gui_g2_proximity(target, completion)
            case PointTarget() | StepTarget():
                return _of_place(target, completion, self._zone if tiered else gaussian_proximity)
            case ChoiceTarget() | OptionTarget():
                return float(is_right(target, completion))
            case TextTarget():
                return similarity(target, completion)
            case MazeTarget() | SudokuTarget() | GridTarget():
                scale = ("counts" if self.blocks == "counts" else "tiered") if tiered else "continuous"
                return block_score(
                    *compared_grids(target, completion),
                    parts=1 if self.blocks == "whole" else _parts(target),
                    scale=scale,
                    zones=self.zones,
                    marked_only=isinstance(target, MazeTarget) and self.maze_cells == "paths",
                )

    def _zone(self, point: Point, box: Box) -> float:
        return zone_value(point, box, self.zones)


def proximity_score(target: Target, completion: ParsedCompletion) -> float:
    """S(τ), untiered, 0 to 1: the Gaussian of a point (App. B.1), the matching cells of a grid, 0 or 1 for an action
    without a point (Table 5) or a letter, the metric of a text."""
    match target:
        case PointTarget() | StepTarget():
            return _of_place(target, completion, gaussian_proximity)
        case ChoiceTarget() | OptionTarget():
            return float(is_right(target, completion))
        case TextTarget():
            return similarity(target, completion)
        case MazeTarget() | SudokuTarget() | GridTarget():
            return block_score(*compared_grids(target, completion), parts=_parts(target), scale="continuous")


def gui_g2_proximity(target: PointTarget | StepTarget, completion: ParsedCompletion) -> float:
    """The reward of GUI-G², 0 to 1: the mean of its point and its coverage reward for a box. The SSL paper asks for
    points, which cover nothing: for them it is the point reward. An action without a point is right or wrong."""
    near = _of_place(target, completion, unbounded_gaussian)
    if not isinstance(target, PointTarget) or (box := parse_box(completion)) is None:
        return near
    return (near + gaussian_coverage(box, target.region)) / 2


def zone_value(point: Point, box: Box, zones: int = 4) -> float:
    """Value of the zone of *box* that contains *point* (App. B.1). Four zones: 1, 0.75 and 0.5 within one, two and
    three standard deviations, 0.25 in the corners, 0 outside.

    K zones: the K - 1 inner bounds divide three standard deviations evenly; the values divide 1 to 0 evenly.
    """
    if not box.holds(point):
        return 0.0
    return zone_at(ellipse_distance(point, box) / SIGMA, zones)


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
