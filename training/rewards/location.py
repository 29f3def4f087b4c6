"""LPO (paper 004): near the right place, and where there is something to see. `r = r_w·r_d` (Eq. 8).

The image's longest edge counts as 1,000 pixels, the paper's `d_max`, whatever its size. The paper does not say how many
bins its histograms of pixel intensity have: `bins` is a choice.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from envs.errors import BadInput
from envs.record import Record
from training.rewards.answers import Said
from training.rewards.geometry import Point, distance
from training.rewards.score import Score
from training.rewards.targets import PointTarget, Target, is_placed, is_right, placed

EPSILON = 1e-6
"""Eq. 5."""
EDGE = 1_000.0
"""Pixels of the longest edge, and `d_max` (Eq. 6)."""

Picture = bytes
"""An image file."""


class Location(Record):
    """LPO's reward, and those that its paper compares it with (Fig. 1)."""

    kind: Literal["lpo"] = "lpo"
    reward: Literal["location", "text", "box", "radius"] = "location"
    """LPO; equal coordinates (UI-TARS); in the box (UI-R1, InfiGUI-R1); within `radius` of the target (GUI-R1)."""
    windows: bool = True
    """r_w; off is the ablation without it."""
    distances: bool = True
    """r_d; off is the ablation without it."""
    window: tuple[int, int] = (28, 28)
    """Width and height in pixels of a window: the patch that the model's vision makes a token of."""
    bins: int = Field(default=256, ge=2, le=256)
    """B of Eq. 4, of 8-bit intensity."""
    radius: float = Field(default=140.0, gt=0)
    """In pixels of an image whose longest edge has 1,000; used by `radius` alone."""

    @property
    def most(self) -> float:
        return 1.0

    def of_group(self, target: Target, group: Sequence[Said], picture: Picture | None) -> list[Score]:
        """Each completion's reward. Raises BadInput where the target is no place, or a *picture* is missing."""
        if not is_placed(target):
            raise BadInput(f"reward 'lpo' needs targets that are places on a screen, and one is a {target.kind}")
        return [self._of(target, said, picture) for said in group]

    def _of(self, target: Target, said: Said, picture: Picture | None) -> Score:
        found, correct = placed(target, said), float(is_right(target, said))
        if self.reward == "location":
            dense = self._dense(found, picture) if self.windows else 1.0
            near = nearness(found) if self.distances else float(found is not None)
            return Score(dense * near, {"correct": correct, "window": dense, "distance": near})
        return Score(self._compared(found, correct), {"correct": correct})

    def _compared(self, found: Found, correct: float) -> float:
        if self.reward == "box" or found is None:
            return correct
        point, place = found
        apart = distance(point, place.region.centre)
        return float(apart == 0 if self.reward == "text" else apart * _scale(place.size) <= self.radius)

    def _dense(self, found: Found, picture: Picture | None) -> float:
        if picture is None:
            raise BadInput("reward 'lpo' needs the image of each example; set reward.windows=false to leave r_w out")
        return 0.0 if found is None else density(found[0], picture, self.window, self.bins)


Found = tuple[Point, PointTarget] | None
"""The point that an answer of the right kind names, and the place that judges it."""


def nearness(found: Found) -> float:
    """r_d (Eq. 6 and 7), 0 to 1: `max(0, 1 − distance/d_max)`; 0 without a point, which is what another kind of action
    gives. The paper's mean over several points is that of one here: of a drag the place judges where it ends."""
    if found is None:
        return 0.0
    point, place = found
    return max(0.0, 1 - distance(point, place.region.centre) * _scale(place.size) / EDGE)


def _scale(screen: tuple[int, int]) -> float:
    return EDGE / max(screen)


def density(point: Point, picture: Picture, window: tuple[int, int] = (28, 28), bins: int = 256) -> float:
    """r_w (Eq. 5), 0 to 1: the entropy of the window that holds *point*, by that of the image's richest; 0 outside."""
    entropies, wide, high = _entropies(picture, window, bins)
    if not (0 <= point.x <= wide and 0 <= point.y <= high):
        return 0.0
    rows, columns = entropies.shape
    row = min(rows - 1, int(point.y * rows / high))
    column = min(columns - 1, int(point.x * columns / wide))
    return float(entropies[row, column] / (entropies.max() + EPSILON))


@lru_cache(maxsize=256)
def _entropies(picture: Picture, window: tuple[int, int], bins: int) -> tuple[NDArray[np.float64], int, int]:
    from PIL import Image, UnidentifiedImageError

    try:
        grey = np.asarray(Image.open(io.BytesIO(picture)).convert("L"))
    except (OSError, UnidentifiedImageError) as error:
        raise BadInput(f"an example's image cannot be read: {error}") from error
    high, wide = grey.shape
    return window_entropies(grey, window, bins), wide, high


def window_entropies(grey: NDArray[Any], window: tuple[int, int], bins: int = 256) -> NDArray[np.float64]:
    """H of Eq. 4 in bits, (M, N): of the histogram of each of M x N windows of *grey* (height, width), intensities 0 to
    255. `M = ⌈height/h⌉` and `N = ⌈width/w⌉` windows share the image evenly (Eq. 3)."""
    high, wide = grey.shape
    rows, columns = math.ceil(high / window[1]), math.ceil(wide / window[0])
    found = np.zeros((rows, columns))
    for i in range(rows):
        for j in range(columns):
            part = grey[i * high // rows : (i + 1) * high // rows, j * wide // columns : (j + 1) * wide // columns]
            counts = np.bincount((part.reshape(-1).astype(np.int64) * bins) // 256, minlength=bins)
            shares = counts[counts > 0] / part.size
            found[i, j] = (shares * np.log2(1 / shares)).sum()
    return found
