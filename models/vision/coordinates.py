"""Converts the coordinates of vision models to CSS pixels of the view and back.

A model sees an image of the view and answers in the space that it was trained on. Actions, observations and traces
always use CSS pixels; nothing else converts.

Conversion is linear: coordinates run from 0 at the left and top edge to the extent of the space at the right and bottom
edge, in every space. Rounding is to the nearest number, halves down, so that the centre of a box that is at least one
step wide comes back inside the box, whose right and bottom edges are outside of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class CoordinateSpace(StrEnum):
    """The numbers in which a model names a point of its image."""

    PIXELS = "pixels"
    """Pixels of the image as it is sent."""
    RESIZED = "resized"
    """Pixels of the image as the model's processor resizes it (Qwen2.5-VL, UI-TARS-1.5)."""
    THOUSAND = "thousand"
    """0 to 1000 in both directions (Qwen3-VL, UI-TARS-1.0, Gemma 3)."""
    UNIT = "unit"
    """0 to 1 in both directions (SmolVLM2)."""


class Point(NamedTuple):
    x: float
    y: float


class Corners(NamedTuple):
    """A box by its edges."""

    left: float
    top: float
    right: float
    bottom: float


class Size(NamedTuple):
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class ImageFrame:
    """The sizes of one image of the view, which relate its coordinate spaces. All are greater than 0."""

    view: Size
    """The view in CSS pixels; fractions of a pixel occur with fractional scale factors."""
    image: Size
    """The image as it is sent, in pixels."""
    resized: Size | None = None
    """The image as the model's processor resizes it, in pixels; None: it is not resized."""

    def extent(self, space: CoordinateSpace) -> Size:
        """The coordinates of the right and the bottom edge."""
        match space:
            case CoordinateSpace.PIXELS:
                return self.image
            case CoordinateSpace.RESIZED:
                return self.resized or self.image
            case CoordinateSpace.THOUSAND:
                return Size(1000, 1000)
            case CoordinateSpace.UNIT:
                return Size(1, 1)

    def digits(self, space: CoordinateSpace) -> int:
        """The fewest decimals with which a number of *space* is at least as precise as a CSS pixel."""
        extent = self.extent(space)
        step = max(self.view.width / extent.width, self.view.height / extent.height)
        return 0 if step <= 1 else math.ceil(math.log10(step * 2))

    def to_view(self, space: CoordinateSpace, point: Point) -> Point:
        """CSS pixels of a model's *point*. A point on the right or bottom edge is moved to the last pixel; one outside
        the image stays outside the view."""
        extent = self.extent(space)
        return Point(
            _in_view(point.x, extent.width, self.view.width), _in_view(point.y, extent.height, self.view.height)
        )

    def to_model(self, space: CoordinateSpace, point: Point, digits: int | None = None) -> Point:
        """A *point* in CSS pixels as a model writes it, with *digits* decimals, by default those of :meth:`digits`."""
        return Point(*self._scaled(space, point, digits))

    def box_to_model(self, space: CoordinateSpace, box: Corners, digits: int | None = None) -> Corners:
        """A *box* in CSS pixels as a model writes it; at least one step wide and high."""
        places = self.digits(space) if digits is None else digits
        step = 10.0**-places
        left, top = self._scaled(space, Point(box.left, box.top), places)
        right, bottom = self._scaled(space, Point(box.right, box.bottom), places)
        return Corners(left, top, max(right, round(left + step, places)), max(bottom, round(top + step, places)))

    def _scaled(self, space: CoordinateSpace, point: Point, digits: int | None) -> tuple[float, float]:
        extent = self.extent(space)
        places = self.digits(space) if digits is None else digits
        return (
            _rounded(point.x * (extent.width / self.view.width), places),
            _rounded(point.y * (extent.height / self.view.height), places),
        )


def smart_resize(size: Size, *, factor: int, min_pixels: int, max_pixels: int) -> Size:
    """The size to which Qwen's processors resize an image of *size* (Qwen2-VL, Sec. 2.1): both sides are multiples of
    *factor* (28 for Qwen2.5-VL, 32 for Qwen3-VL), and the area is within the limits where the aspect ratio allows."""
    width, height = (round(side / factor) * factor for side in size)
    area = size.width * size.height
    if width * height > max_pixels:
        shrink = math.sqrt(area / max_pixels)
        width, height = (max(factor, math.floor(side / shrink / factor) * factor) for side in size)
    elif width * height < min_pixels:
        grow = math.sqrt(min_pixels / area)
        width, height = (math.ceil(side * grow / factor) * factor for side in size)
    return Size(width, height)


def _in_view(value: float, extent: float, view: float) -> float:
    return max(0.0, view - 0.5) if value == extent else value * (view / extent)


def _rounded(value: float, digits: int) -> float:
    """The nearest number with *digits* decimals; halves are rounded down."""
    power = 10**digits
    return math.ceil(value * power - 0.5) / power
