"""The reward of LPO (Tang et al. 2025), `r = r_w·r_d` (Eq. 8): information density of the window times proximity.

The paper gives no reward to steps without a point, such as typing; here they are rewarded for correctness. The image's
longest edge is scaled to 1,000 pixels, the paper's `d_max`. The paper does not state the number of histogram bins or
the conversion to grey; both are choices made here.
"""

from __future__ import annotations

import io
import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from envs.core.errors import BadInput
from envs.core.record import Record
from models.vision.answers import ParsedCompletion
from training.grpo.rewards.geometry import Point, distance
from training.grpo.rewards.registry import RewardEntry
from training.grpo.rewards.score import Score
from training.grpo.rewards.targets import (
    AimedPoint,
    PointTarget,
    StepTarget,
    Target,
    aimed_points,
    has_places,
    is_right,
)

EPSILON = 1e-6
"""Eq. 5."""
EDGE = 1_000.0
"""Pixels of the longest edge, and `d_max` (Eq. 6)."""

Picture = bytes
"""An image file."""


class LpoReward(Record):
    """LPO's reward and the rewards that its paper compares it with (Fig. 1)."""

    kind: Literal["lpo"] = "lpo"
    reward: Literal["location", "text", "box", "radius"] = "location"
    """`location`: LPO. `text`: equal coordinates (UI-TARS). `box`: in the box (UI-R1, InfiGUI-R1). `radius`: within
    `radius` of the target (GUI-R1)."""
    windows: bool = True
    """Use r_w; false is the ablation without it."""
    distances: bool = True
    """Use r_d; false is the ablation without it."""
    window: tuple[PositiveInt, PositiveInt] = (28, 28)
    """Width and height of a window in pixels: the image patch of one vision token."""
    bins: int = Field(default=256, ge=2, le=256)
    """B of Eq. 4, of 8-bit intensity."""
    radius: float = Field(default=140.0, gt=0)
    """Radius in pixels of an image with a longest edge of 1,000; only used by `radius`."""

    @property
    def max_reward(self) -> float:
        return 1.0

    def of_group(self, target: Target, group: Sequence[ParsedCompletion], picture: Picture | None) -> list[Score]:
        """Scores each completion. Raises BadInput if the target is neither a step nor a point, or a *picture* is
        missing."""
        if not isinstance(target, PointTarget | StepTarget):
            raise BadInput(f"reward 'lpo' is for steps and places on a screen, and one target is a {target.kind}")
        return [self._of(target, completion, picture) for completion in group]

    def _of(self, target: PointTarget | StepTarget, completion: ParsedCompletion, picture: Picture | None) -> Score:
        correct = float(is_right(target, completion))
        if self.reward == "box" or not has_places(target):
            return Score(correct, {"correct": correct})
        points = aimed_points(target, completion)
        if self.reward == "location":
            dense = self._dense(points, picture) if self.windows else 1.0
            near = proximity_score(points) if self.distances else float(bool(points))
            return Score(dense * near, {"correct": correct, "window": dense, "distance": near})
        limit = 0.0 if self.reward == "text" else self.radius
        within = [distance(aim.point, aim.right) * _scale(aim.place.size) <= limit for aim in points]
        return Score(float(bool(within) and all(within)), {"correct": correct})

    def _dense(self, points: Sequence[AimedPoint], picture: Picture | None) -> float:
        if picture is None:
            raise BadInput("reward 'lpo' needs the image of each example; set reward.windows=false to leave r_w out")
        return _mean([density(aim.point, picture, self.window, self.bins) for aim in points])


def proximity_score(points: Sequence[AimedPoint]) -> float:
    """r_d (Eq. 6 and 7), 0 to 1: the mean of `max(0, 1 − distance/d_max)`; 0 without a point, as for another action."""
    return _mean([max(0.0, 1 - distance(aim.point, aim.right) * _scale(aim.place.size) / EDGE) for aim in points])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _scale(screen: tuple[int, int]) -> float:
    return EDGE / max(screen)


def density(point: Point, picture: Picture, window: tuple[int, int] = (28, 28), bins: int = 256) -> float:
    """r_w (Eq. 5), 0 to 1: the entropy of the window at *point* over the image's maximum; 0 outside. A point on the
    edge of two windows belongs to the one that begins there."""
    entropies, wide, high = _entropies(picture, window, bins)
    if not (0 <= point.x <= wide and 0 <= point.y <= high):
        return 0.0
    rows, columns = entropies.shape
    row = bisect_right(_edges(high, rows), point.y, hi=rows) - 1
    column = bisect_right(_edges(wide, columns), point.x, hi=columns) - 1
    return float(entropies[row, column] / (entropies.max() + EPSILON))


@lru_cache(maxsize=256)
def _entropies(picture: Picture, window: tuple[int, int], bins: int) -> tuple[NDArray[np.float64], int, int]:
    from PIL import Image

    try:
        grey = np.asarray(Image.open(io.BytesIO(picture)).convert("L"))
    except (OSError, SyntaxError, ValueError) as error:  # raised by Pillow for damaged files
        raise BadInput(f"an example's image cannot be read: {error}") from error
    high, wide = grey.shape
    return window_entropies(grey, window, bins), wide, high


def window_entropies(grey: NDArray[Any], window: tuple[int, int], bins: int = 256) -> NDArray[np.float64]:
    """H of Eq. 4 in bits, (M, N): the histogram entropy of each of M x N windows of *grey* (height, width), intensities
    0 to 255. `M = ⌈height/h⌉` and `N = ⌈width/w⌉` windows divide the image evenly (Eq. 3)."""
    high, wide = grey.shape
    down, across = (_edges(high, math.ceil(high / window[1])), _edges(wide, math.ceil(wide / window[0])))
    entropies = np.zeros((len(down) - 1, len(across) - 1))
    for i, (top, bottom) in enumerate(pairwise(down)):
        for j, (left, right) in enumerate(pairwise(across)):
            part = grey[top:bottom, left:right]
            counts = np.bincount((part.reshape(-1).astype(np.int64) * bins) // 256, minlength=bins)
            shares = counts[counts > 0] / part.size
            entropies[i, j] = (shares * np.log2(1 / shares)).sum()
    return entropies


def _edges(length: int, parts: int) -> list[int]:
    """Boundaries of *parts* windows in whole pixels."""
    return [i * length // parts for i in range(parts + 1)]


ENTRY = RewardEntry(
    LpoReward,
    {
        "group": 16,
        "answer_tokens": 128,
        "kl": 1e-4,
        "clip_high": 0.28,
        "optimization": {"learning_rate": 1e-6, "batch_rows": 128},
    },
)
"""Constants of §5.1."""
