"""Units of the coordinates in answers, and limits of the size in which a model sees images.

Targets and rewards are in pixels of the image files. A model may answer in other units: Qwen2.5-VL in pixels of the
image as its processor resizes it, Qwen3-VL in thousandths of the image. Answers are converted to pixels of the file
when they are parsed, so that rewards that measure distances (LPO, Distance@80) do not depend on the units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from envs.core.errors import BadInput
from models.vision.coordinates import CoordinateSpace
from models.vision.coordinates import Size as ViewSize
from training.grpo.examples import Example, image_size
from training.grpo.rewards import Scale, places_of

Size = tuple[int, int]
"""Width and height in pixels."""
EXTENT: Final = {CoordinateSpace.THOUSAND: 1_000.0, CoordinateSpace.UNIT: 1.0}
DECLARED_PROFILE: Final[Mapping[CoordinateSpace, str]] = {
    CoordinateSpace.PIXELS: "general",
    CoordinateSpace.RESIZED: "qwen2.5-vl",
    CoordinateSpace.THOUSAND: "thousand",
    CoordinateSpace.UNIT: "unit",
}
"""The profile of :mod:`models.vision.profiles` in whose coordinates a trained model answers."""


def parse_coordinates(name: str) -> CoordinateSpace:
    """Returns the units of *name*. Raises BadInput."""
    try:
        return CoordinateSpace(name)
    except ValueError:
        raise BadInput(f"--coordinates {name!r}: use {', '.join(CoordinateSpace)}") from None


class AnswerFrames:
    """Converts the coordinates of a model's answers."""

    def __init__(self, processor: Any, coordinates: CoordinateSpace) -> None:
        self._processor = processor
        self._coordinates = coordinates
        self._shown: dict[Size, Size] = {}

    def scale(self, example: Example) -> Scale:
        """Pixels of the example's image file per unit of an answer, across and down; 1 without an image. Raises
        BadInput if the processor resizes images in parts, or if the image is invalid."""
        if self._coordinates is CoordinateSpace.PIXELS or example.image is None:
            return 1.0, 1.0
        size = _file_size(example)
        extent = EXTENT.get(self._coordinates)
        across, down = self._resized(size) if extent is None else (extent, extent)
        return size[0] / across, size[1] / down

    def size(self, example: Example) -> ViewSize:
        """Size of the example's image, which a prompt may state: after resizing if answers are in pixels of that image,
        otherwise the file's. Raises as :meth:`scale`."""
        size = _file_size(example)
        resized = self._coordinates is CoordinateSpace.RESIZED and example.image is not None
        return ViewSize(*(self._resized(size) if resized else size))

    def _resized(self, size: Size) -> Size:
        if size not in self._shown:
            shown = shown_size(self._processor, size)
            if shown is None:
                raise BadInput(
                    'coordinates "resized" needs a processor that resizes an image as a whole; this one cuts it into '
                    'tiles: take "pixels", "thousand" or "unit"'
                )
            self._shown[size] = shown
        return self._shown[size]


def _file_size(example: Example) -> Size:
    places = places_of(example.target)
    return places[0].size if places else image_size(example.picture or b"")


def keeps_aspect(processor: Any) -> bool:
    """Whether the processor resizes images to an area between two limits, as Qwen's do."""
    return {"shortest_edge", "longest_edge"} <= set(_size(processor)) and hasattr(
        processor.image_processor, "merge_size"
    )


def shown_size(processor: Any, size: Size) -> Size | None:
    """Size to which *processor* resizes an image of *size*; None if it cuts images into tiles."""
    from PIL import Image

    images, fixed = processor.image_processor, _size(processor)
    if keeps_aspect(processor):
        grid = images(images=[Image.new("RGB", size)], return_tensors="pt")["image_grid_thw"][0].tolist()
        return grid[2] * images.patch_size, grid[1] * images.patch_size
    return (fixed["width"], fixed["height"]) if {"width", "height"} <= set(fixed) else None


def limit_pixels(processor: Any, least: int | None, most: int | None) -> None:
    """Sets the limits of an image's area in pixels. None keeps the checkpoint's. Raises BadInput if the processor has
    no such limits, or if they are reversed."""
    if least is None and most is None:
        return
    if not hasattr(processor, "image_processor") or not keeps_aspect(processor):
        raise BadInput(
            "min_pixels and max_pixels are for processors that keep the aspect ratio of images, such as Qwen's"
        )
    size = _size(processor)
    limits = {
        "shortest_edge": size["shortest_edge"] if least is None else least,
        "longest_edge": size["longest_edge"] if most is None else most,
    }
    if limits["shortest_edge"] > limits["longest_edge"]:
        raise BadInput(f"min_pixels {limits['shortest_edge']} is above max_pixels {limits['longest_edge']}")
    processor.image_processor.size = type(processor.image_processor.size)(**limits)


def _size(processor: Any) -> dict[str, int]:
    size = processor.image_processor.size
    return {name: value for name, value in dict(size).items() if value is not None}
