"""The reward of LPO (Tang et al. 2025), `r = r_w·r_d` (Eq. 8): information density of the window times proximity.

The paper gives no reward to steps without a point, such as typing; here they are rewarded for correctness. Windows and
distances are measured on the image scaled to a longest edge of 1,000 pixels (App. B), the paper's `d_max`. An action
type (Eq. 7) is a kind of action with its mouse button and number of clicks: the amount of a scroll is not part of it.
The paper does not state the number of histogram bins, the conversion to grey or the filter of the scaling; these are
choices made here.

The rewards that the paper compares add terms to a position: UI-R1 is `box` with `type_weight` and `format_weight` 1;
InfiGUI-R1 is `overlap` with both; GUI-R1 is `radius` with both. Their weights are settings.
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
from training.grpo.rewards.geometry import Point, distance, overlap
from training.grpo.rewards.guirlvg import strict_format
from training.grpo.rewards.registry import RewardEntry
from training.grpo.rewards.score import Score
from training.grpo.rewards.targets import (
    AimedPoint,
    PointTarget,
    StepTarget,
    Target,
    aimed_points,
    has_places,
    has_type,
    is_right,
    parse_box,
)

EPSILON = 1e-6
"""Eq. 5."""
EDGE = 1_000.0
"""Pixels of the longest edge (App. B), and `d_max` (Eq. 6)."""

Picture = bytes
"""An image file."""


class LpoReward(Record):
    """LPO's reward and the rewards that its paper compares it with (Fig. 1)."""

    kind: Literal["lpo"] = "lpo"
    reward: Literal["location", "text", "box", "overlap", "radius"] = "location"
    """Reward of a position. `location`: LPO. `text`: equal coordinates (UI-TARS). `box`: in the box (UI-R1).
    `overlap`: the IoU of the answered box, or in the box for a point (InfiGUI-R1). `radius`: within `radius` of the
    target (GUI-R1)."""
    windows: bool = True
    """Use r_w; false is the ablation without it."""
    distances: bool = True
    """Use r_d; false is the ablation without it."""
    window: tuple[PositiveInt, PositiveInt] = (28, 28)
    """Width and height of a window in pixels: the image patch of one vision token."""
    edge: PositiveInt | None = int(EDGE)
    """Longest edge of the image in pixels, to which it is scaled before it is divided into windows. None: its own
    size."""
    bins: int = Field(default=256, ge=2, le=256)
    """B of Eq. 4, of 8-bit intensity."""
    radius: float = Field(default=140.0, gt=0)
    """Radius in pixels of an image with a longest edge of 1,000; only used by `radius`."""
    overlap_above: float = Field(default=0.5, ge=0, lt=1)
    """Threshold of the IoU; only used by `overlap`."""
    type_weight: float = Field(default=0.0, ge=0)
    """Weight of an added reward of 1 for the right action type. LPO has none: its r_d contains the type."""
    format_weight: float = Field(default=0.0, ge=0)
    """Weight of an added reward of 1 for `<think>…</think><answer>…</answer>` and nothing else. LPO has none."""

    @property
    def max_reward(self) -> float:
        return 1.0 + self.type_weight + self.format_weight

    def of_group(self, target: Target, group: Sequence[ParsedCompletion], picture: Picture | None) -> list[Score]:
        """Scores each completion. Raises BadInput if the target is neither a step nor a point, or a *picture* is
        missing."""
        if not isinstance(target, PointTarget | StepTarget):
            raise BadInput(f"reward 'lpo' is for steps and positions on a screen, and one target is a {target.kind}")
        return [self._of(target, completion, picture) for completion in group]

    def _of(self, target: PointTarget | StepTarget, completion: ParsedCompletion, picture: Picture | None) -> Score:
        score = self._position(target, completion, picture)
        if not (self.type_weight or self.format_weight):
            return score
        terms = {"type": float(has_type(target, completion)), "format": strict_format(completion)}
        added = self.type_weight * terms["type"] + self.format_weight * terms["format"]
        return Score(score.total + added, {**score.parts, **terms})

    def _position(
        self, target: PointTarget | StepTarget, completion: ParsedCompletion, picture: Picture | None
    ) -> Score:
        correct = float(is_right(target, completion))
        if self.reward == "box" or not has_places(target):
            return Score(correct, {"correct": correct})
        if self.reward == "overlap":
            return Score(self._overlaps(target, completion, correct), {"correct": correct})
        points = aimed_points(target, completion, by_type=True)
        if self.reward == "location":
            dense = self._dense(points, picture) if self.windows else 1.0
            near = proximity_score(points) if self.distances else float(bool(points))
            return Score(dense * near, {"correct": correct, "window": dense, "distance": near})
        limit = 0.0 if self.reward == "text" else self.radius
        within = [distance(aim.point, aim.right) * _scale(aim.place.size) <= limit for aim in points]
        return Score(float(bool(within) and all(within)), {"correct": correct})

    def _overlaps(self, target: PointTarget | StepTarget, completion: ParsedCompletion, correct: float) -> float:
        box = parse_box(completion) if isinstance(target, PointTarget) else None
        if box is None or not isinstance(target, PointTarget):
            return correct
        return float(overlap(box, target.region) > self.overlap_above)

    def _dense(self, points: Sequence[AimedPoint], picture: Picture | None) -> float:
        if picture is None:
            raise BadInput("reward 'lpo' needs the image of each example; set reward.windows=false to leave r_w out")
        return _mean([density(aim.point, picture, self.window, self.bins, self.edge) for aim in points])


def proximity_score(points: Sequence[AimedPoint]) -> float:
    """r_d (Eq. 6 and 7), 0 to 1: the mean of `max(0, 1 − distance/d_max)`; 0 without a point, as for another action."""
    return _mean([max(0.0, 1 - distance(aim.point, aim.right) * _scale(aim.place.size) / EDGE) for aim in points])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _scale(screen: tuple[int, int]) -> float:
    return EDGE / max(screen)


def density(
    point: Point,
    picture: Picture,
    window: tuple[int, int] = (28, 28),
    bins: int = 256,
    edge: int | None = int(EDGE),
) -> float:
    """r_w (Eq. 5), 0 to 1: the entropy of the window at *point* over the image's maximum; 0 outside. A point on the
    edge of two windows belongs to the one that begins there. *point* is in pixels of *picture*, *window* in pixels of
    the image scaled to a longest edge of *edge*."""
    entropies, size, scaled = _entropies(picture, window, bins, edge)
    if not (0 <= point.x <= size[0] and 0 <= point.y <= size[1]):
        return 0.0
    rows, columns = entropies.shape
    down, across = point.y * scaled[1] / size[1], point.x * scaled[0] / size[0]
    row = bisect_right(_edges(scaled[1], rows), down, hi=rows) - 1
    column = bisect_right(_edges(scaled[0], columns), across, hi=columns) - 1
    return float(entropies[row, column] / (entropies.max() + EPSILON))


@lru_cache(maxsize=256)
def _entropies(
    picture: Picture, window: tuple[int, int], bins: int, edge: int | None
) -> tuple[NDArray[np.float64], tuple[int, int], tuple[int, int]]:
    """Returns (entropies of the windows, size of the image, size of the scaled image); sizes are (width, height)."""
    from PIL import Image

    try:
        grey = Image.open(io.BytesIO(picture)).convert("L")
    except (OSError, SyntaxError, ValueError) as error:  # raised by Pillow for damaged files
        raise BadInput(f"an example's image cannot be read: {error}") from error
    size = grey.size
    if edge is not None and edge != max(size):
        scale = edge / max(size)
        grey = grey.resize((max(1, round(size[0] * scale)), max(1, round(size[1] * scale))), Image.Resampling.BICUBIC)
    return window_entropies(np.asarray(grey), window, bins), size, grey.size


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
        "compute": {"max_tokens": 4_096},
    },
)
"""Constants of §5.1 and App. D. The paper states neither the batch nor the number of steps, nor adapters, nor the
length of a row: a screenshot of 1920 x 1080 pixels has 2,691 tokens."""
