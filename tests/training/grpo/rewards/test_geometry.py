"""Distances, fields and overlaps, by hand. Of BOX the centre is (130, 215) and the half sizes are 30 and 15."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from training.grpo.rewards.geometry import Box, Point, distance, ellipse_distance, gaussian_proximity, overlap

BOX = Box(100, 200, 160, 230)


def test_a_box() -> None:
    assert BOX.centre == (130, 215)
    assert (BOX.width, BOX.height, BOX.area) == (60, 30, 1800)


@pytest.mark.parametrize("box", [Box(10, 0, 0, 10), Box(0, 10, 10, 0), Box(10, 10, 0, 0), Box(5, 0, 5, 10)], ids=str)
def test_a_box_that_is_none_has_no_area(box: Box) -> None:
    assert box.area == 0


@pytest.mark.parametrize(
    ("point", "held"),
    [
        (Point(130, 215), True),
        (Point(100, 200), True),
        (Point(160, 230), True),
        (Point(160, 200), True),
        (Point(99.999, 215), False),
        (Point(160.001, 215), False),
        (Point(130, 199.999), False),
        (Point(130, 230.001), False),
    ],
    ids=str,
)
def test_edges_belong_to_a_box(point: Point, held: bool) -> None:
    assert BOX.holds(point) is held


@pytest.mark.parametrize(
    ("point", "deviations"),
    [
        pytest.param(Point(130, 215), 0, id="centre"),
        pytest.param(Point(140, 215), 1, id="one across"),
        pytest.param(Point(130, 210), 1, id="one up"),
        pytest.param(Point(136, 219), 1, id="one aslant"),  # (6/30)² + (4/15)² = .04 + .0711 = 1/9 = σ²
        pytest.param(Point(110, 215), 2, id="two across"),
        pytest.param(Point(118, 207), 2, id="two aslant"),  # twice as far as (6, 4)
        pytest.param(Point(160, 215), 3, id="three, on the edge"),
        pytest.param(Point(148, 227), 3, id="three aslant"),
        pytest.param(Point(145, 222.5), 1.5 * math.sqrt(2), id="half of the way to a corner"),  # d² = ¼ + ¼, over σ²
        pytest.param(Point(100, 230), 3 * math.sqrt(2), id="corner"),  # d² = 1 + 1, over σ² = 1/9: 18
    ],
)
def test_the_gaussian_field_on_its_contours(point: Point, deviations: float) -> None:
    """App. B.1: on the contour of k standard deviations, φ = exp(−k²/2): .6065, .1353, .0111, in a corner e⁻⁹."""
    assert ellipse_distance(point, BOX) == pytest.approx(deviations / 3)
    assert gaussian_proximity(point, BOX) == pytest.approx(math.exp(-(deviations**2) / 2))


@pytest.mark.parametrize("point", [Point(160.001, 215), Point(130, 199), Point(0, 0), Point(1e30, -1e30)], ids=str)
def test_the_field_ends_at_the_box(point: Point) -> None:
    assert gaussian_proximity(point, BOX) == 0


shares = st.floats(-1, 1)
lengths = st.floats(0.5, 4000)


@given(shares, shares, lengths, lengths, st.floats(-500, 500))
def test_the_field_depends_on_where_in_the_box_a_point_is_and_on_nothing_else(
    across: float, down: float, wide: float, high: float, moved: float
) -> None:
    """φ = exp(−(u² + v²)·9/2) of the shares u and v of the half sizes."""
    assume(max(abs(across), abs(down)) < 0.999)
    box = Box(moved - wide, -high, moved + wide, high)
    result = gaussian_proximity(Point(moved + across * wide, down * high), box)
    assert result == pytest.approx(math.exp(-4.5 * (across**2 + down**2)), rel=1e-6)


@given(shares, shares, st.floats(0, 1))
def test_the_field_falls_on_the_way_out(across: float, down: float, share: float) -> None:
    inner = gaussian_proximity(Point(130 + 30 * across * share, 215 + 15 * down * share), BOX)
    outer = gaussian_proximity(Point(130 + 30 * across, 215 + 15 * down), BOX)
    assert 0 <= outer <= inner * (1 + 1e-9) <= 1 + 1e-9


def test_distance() -> None:
    assert distance(Point(1, 2), Point(4, -2)) == 5


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(Box(0, 0, 10, 10), Box(0, 0, 10, 10), 1, id="the same"),
        pytest.param(Box(0, 0, 10, 10), Box(5, 0, 15, 10), 50 / 150, id="half across"),
        pytest.param(Box(0, 0, 10, 10), Box(5, 5, 15, 15), 25 / 175, id="a corner"),
        pytest.param(Box(0, 0, 10, 10), Box(2, 2, 7, 7), 25 / 100, id="inside"),
        pytest.param(Box(0, 0, 10, 10), Box(10, 0, 20, 10), 0, id="touching"),
        pytest.param(Box(0, 0, 10, 10), Box(11, 11, 20, 20), 0, id="apart"),
        pytest.param(Box(0, 0, 10, 10), Box(10, 10, 0, 0), 0, id="corners the wrong way round"),
        pytest.param(Box(0, 0, 10, 10), Box(5, 0, 5, 10), 0, id="a line"),
        pytest.param(Box(3, 3, 3, 3), Box(3, 3, 3, 3), 0, id="both a point"),
    ],
)
def test_intersection_over_union(one: Box, other: Box, expected: float) -> None:
    assert overlap(one, other) == overlap(other, one) == pytest.approx(expected)


numbers = st.floats(-1e30, 1e30)
boxes = st.builds(Box, numbers, numbers, numbers, numbers)


@given(boxes, boxes)
def test_any_two_boxes_overlap_by_a_share(one: Box, other: Box) -> None:
    assert 0 <= overlap(one, other) <= 1
    assert overlap(one, other) == overlap(other, one)
