"""Points and boxes on a screen: x to the right, y down, in pixels of the image that the model was shown."""

from __future__ import annotations

import math
from typing import NamedTuple

SIGMA = 1 / 3
"""SSL paper, App. B.1: the ellipse inscribed in the box is at three standard deviations."""


class Point(NamedTuple):
    x: float
    y: float


class Box(NamedTuple):
    """A box with inclusive edges. Its area is 0 if right is not greater than left, or bottom not greater than top."""

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
    """Distance of *point* from the centre of *box*, in half sizes of the box (SSL paper, App. B.1): 0 at the centre, 1
    on the inscribed ellipse, √2 in a corner."""
    centre = box.centre
    return math.hypot((point.x - centre.x) / (box.width / 2), (point.y - centre.y) / (box.height / 2))


def gaussian_proximity(point: Point, box: Box) -> float:
    """φ of the SSL paper, App. B.1: `exp(−d²/2σ²)` inside *box*, 1 at its centre; 0 outside."""
    if not box.holds(point):
        return 0.0
    return math.exp(-(ellipse_distance(point, box) ** 2) / (2 * SIGMA**2))


def unbounded_gaussian(point: Point, box: Box) -> float:
    """The point reward of GUI-G² (Tang et al. 2025), 0 to 1: a Gaussian around the centre of *box* whose standard
    deviation is half of the box's size, outside of the box, too."""
    return math.exp(-(ellipse_distance(point, box) ** 2) / 2)


def gaussian_coverage(first: Box, second: Box) -> float:
    """The coverage reward of GUI-G², 0 to 1: the Bhattacharyya coefficient of two Gaussians at the boxes' centres, with
    half of the boxes' sizes as standard deviations. 0 for a box without an area."""
    if not (first.area and second.area):
        return 0.0
    axes = (
        (first.width / 2, second.width / 2, first.centre.x - second.centre.x),
        (first.height / 2, second.height / 2, first.centre.y - second.centre.y),
    )
    factors = (
        math.sqrt(2 * one * other / (one**2 + other**2)) * math.exp(-(apart**2) / (4 * (one**2 + other**2)))
        for one, other, apart in axes
    )
    return math.prod(factors)


def distance(first: Point, second: Point) -> float:
    """Euclidean distance in pixels."""
    return math.hypot(first.x - second.x, first.y - second.y)


def overlap(first: Box, second: Box) -> float:
    """Intersection over union, 0 to 1; 0 if both areas are 0."""
    wide = min(first.right, second.right) - max(first.left, second.left)
    high = min(first.bottom, second.bottom) - max(first.top, second.top)
    shared = max(0.0, wide) * max(0.0, high)
    union = first.area + second.area - shared
    return shared / union if union > 0 else 0.0
