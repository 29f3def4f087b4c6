"""Coordinates of vision models: to CSS pixels of the view and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.vision.coordinates import CoordinateSpace, Corners, ImageFrame, Point, Size, smart_resize
from tests.models.vision.screenshots import centre_of, contains, screenshot_frame

SIZES = (Size(1280, 800), Size(1920, 1080), Size(375, 667), Size(1001, 333))
SCALES = (1.0, 2.0)
QWEN2_5 = {"factor": 28, "min_pixels": 56 * 56, "max_pixels": 1280 * 28 * 28}
QWEN3 = {"factor": 32, "min_pixels": 64 * 64, "max_pixels": 1280 * 32 * 32}


def frame_of(view: Size, scale: float, limits: dict[str, int] = QWEN2_5) -> ImageFrame:
    image = Size(view.width * scale, view.height * scale)
    return screenshot_frame(image, scale, smart_resize(image, **limits))


def _edges(data: st.DataObject, side: float) -> tuple[float, float]:
    """Two edges at least a pixel apart, in the 64ths of a pixel in which Chromium lays out."""
    length = data.draw(st.integers(64, int(side) * 64))
    start = data.draw(st.integers(0, int(side) * 64 - length))
    return start / 64, (start + length) / 64


@pytest.mark.parametrize("limits", [QWEN2_5, QWEN3], ids=["28", "32"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("view", SIZES, ids=str)
@given(data=st.data())
def test_the_centre_of_any_box_comes_back_inside_it(
    view: Size, scale: float, limits: dict[str, int], data: st.DataObject
) -> None:
    frame = frame_of(view, scale, limits)
    left, right = _edges(data, view.width)
    top, bottom = _edges(data, view.height)
    box = Corners(left, top, right, bottom)
    for space in CoordinateSpace:
        assert contains(box, frame.to_view(space, frame.to_model(space, centre_of(box))))
        assert contains(box, frame.to_view(space, centre_of(frame.box_to_model(space, box))))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("view", SIZES, ids=str)
@given(data=st.data())
def test_a_written_number_comes_back_as_itself(view: Size, scale: float, data: st.DataObject) -> None:
    frame = frame_of(view, scale)
    for space in CoordinateSpace:
        extent, digits = frame.extent(space), frame.digits(space)
        steps = [data.draw(st.integers(0, round(side * 10**digits) - 1)) for side in extent]
        point = Point(*(step / 10**digits for step in steps))
        assert frame.to_model(space, frame.to_view(space, point)) == point


def test_the_spaces_of_one_image() -> None:
    frame = frame_of(Size(1280, 800), 2.0)
    assert frame.resized == Size(1260, 784)
    point = Point(640, 200)
    assert frame.to_model(CoordinateSpace.PIXELS, point) == (1280, 400)
    assert frame.to_model(CoordinateSpace.RESIZED, point) == (630, 196)
    assert frame.to_model(CoordinateSpace.THOUSAND, point) == (500, 250)
    assert frame.to_model(CoordinateSpace.UNIT, point) == (0.5, 0.25)


def test_decimals_are_as_precise_as_a_pixel() -> None:
    frame = frame_of(Size(1280, 800), 1.0)
    assert {space.value: frame.digits(space) for space in CoordinateSpace} == {
        "pixels": 0,
        "resized": 1,  # 1260 pixels for 1280
        "thousand": 1,
        "unit": 4,
    }
    assert frame.to_model(CoordinateSpace.THOUSAND, Point(333, 333), digits=0) == (260, 416)


def test_edges_and_points_outside() -> None:
    frame = frame_of(Size(1280, 800), 1.0)
    assert frame.to_view(CoordinateSpace.THOUSAND, Point(1000, 1000)) == (1279.5, 799.5)
    assert frame.to_view(CoordinateSpace.THOUSAND, Point(1500, -10)) == (1920, -8)


def test_an_image_that_is_not_resized() -> None:
    frame = ImageFrame(Size(1280, 800), Size(640, 400))
    assert frame.to_view(CoordinateSpace.RESIZED, Point(320, 100)) == (640, 200)


@given(
    width=st.integers(10, 4000),
    height=st.integers(30, 4000),
    limits=st.sampled_from([QWEN2_5, QWEN3, {"factor": 28, "min_pixels": 3136, "max_pixels": 12_845_056}]),
)
def test_sizes_are_those_of_the_published_processor(width: int, height: int, limits: dict[str, int]) -> None:
    published = pytest.importorskip("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl").smart_resize
    if max(width, height) <= 200 * min(width, height):  # it refuses others
        high, wide = published(height, width, **limits)
        assert smart_resize(Size(width, height), **limits) == Size(wide, high)
