"""Points and boxes on a screen: x to the right, y down, in pixels of the image that the model was shown."""

from __future__ import annotations

import math
from typing import NamedTuple

SIGMA = 1 / 3
"""SSL paper, App. B.1: three standard deviations reach the ellipse that the box holds."""


class Point(NamedTuple):
    x: float
    y: float


class Box(NamedTuple):
    """Left, top, right and bottom; the edges belong to it. Of no area where right is not beyond left, or bottom not
    beyond top."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def centre(self) -> Point:
        return Point((self.left + self.right) / 2, (self.top + self.bottom) / 2)

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    @property
    def area(self) -> float:
        return max(0.0, self.width) * max(0.0, self.height)

    def holds(self, point: Point) -> bool:
        return self.left <= point.x <= self.right and self.top <= point.y <= self.bottom


def ellipse_distance(point: Point, box: Box) -> float:
    """How far *point* is from the centre of *box*, in its half sizes (SSL paper, App. B.1): 0 at the centre, 1 on the
    ellipse that the box holds, √2 in a corner."""
    centre = box.centre
    return math.hypot((point.x - centre.x) / (box.width / 2), (point.y - centre.y) / (box.height / 2))


def gaussian_proximity(point: Point, box: Box) -> float:
    """φ of the SSL paper, App. B.1: `exp(−d²/2σ²)` inside *box*, 1 at its centre; 0 outside."""
    if not box.holds(point):
        return 0.0
    return math.exp(-(ellipse_distance(point, box) ** 2) / (2 * SIGMA**2))


def distance(one: Point, other: Point) -> float:
    """Euclidean, in pixels."""
    return math.hypot(one.x - other.x, one.y - other.y)


def overlap(one: Box, other: Box) -> float:
    """Intersection over union, 0 to 1; 0 where both are of no area."""
    wide = min(one.right, other.right) - max(one.left, other.left)
    high = min(one.bottom, other.bottom) - max(one.top, other.top)
    shared = max(0.0, wide) * max(0.0, high)
    whole = one.area + other.area - shared
    return shared / whole if whole > 0 else 0.0
