"""Screenshots and boxes for tests of coordinates."""

from __future__ import annotations

from models.vision.coordinates import Corners, ImageFrame, Point, Size


def screenshot_frame(image: Size, device_scale: float, resized: Size | None = None) -> ImageFrame:
    """The frame of a screenshot with *device_scale* image pixels a CSS pixel."""
    return ImageFrame(Size(image.width / device_scale, image.height / device_scale), image, resized)


def centre_of(box: Corners) -> Point:
    return Point((box.left + box.right) / 2, (box.top + box.bottom) / 2)


def contains(box: Corners, point: Point) -> bool:
    """Whether *point* is inside; the right and the bottom edge are outside."""
    return box.left <= point.x < box.right and box.top <= point.y < box.bottom
