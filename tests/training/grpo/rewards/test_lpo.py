"""LPO: windows (Eq. 3 to 5), distances (Eq. 6 and 7), and what its paper compares them with, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from envs.core.actions import ClickAt
from envs.core.errors import BadInput
from tests.training.grpo.rewards.examples import CLICK, DRAG, MAZE, POINT, SCROLL, SUDOKU_4, TYPE, png
from training.grpo.rewards import PointTarget, Score, StepTarget, Target, read_completion
from training.grpo.rewards.geometry import Point
from training.grpo.rewards.lpo import LpoReward, _entropies, density, proximity_score, window_entropies
from training.grpo.rewards.targets import AimedPoint

Grey = NDArray[np.uint8]


def cycle(*intensities: int, side: int = 16) -> Grey:
    """A square window in which each of these, which divide its cells, is found as often."""
    return np.resize(np.array(intensities, dtype=np.uint8), (side, side))


FLAT, HALVES, QUARTERS, ALL = cycle(90), cycle(0, 255), cycle(0, 80, 160, 240), cycle(*range(256))
"""Windows of 0, 1, 2 and 8 bits."""
PICTURE = png(np.block([[FLAT, HALVES], [QUARTERS, FLAT]]))
"""32 x 32 pixels, four windows of 16 x 16."""


@pytest.mark.parametrize(
    ("window", "bits"),
    [
        pytest.param(FLAT, 0, id="constant"),
        pytest.param(HALVES, 1, id="half and half"),
        pytest.param(cycle(0, 255, 255, 255), 0.8112781, id="a quarter"),  # ¼·2 + ¾·log₂(4/3)
        pytest.param(QUARTERS, 2, id="four of a kind"),
        pytest.param(ALL, 8, id="uniform"),
    ],
)
def test_entropy(window: Grey, bits: float) -> None:
    assert window_entropies(window, (16, 16)) == pytest.approx(np.array([[bits]]))


@pytest.mark.parametrize(
    ("bins", "bits"),
    [
        pytest.param(256, 8, id="256"),
        pytest.param(16, 4, id="16"),
        pytest.param(2, 1, id="2"),
    ],
)
def test_bins_are_of_one_width(bins: int, bits: float) -> None:
    assert window_entropies(ALL, (16, 16), bins) == pytest.approx(np.array([[bits]]))


def test_with_two_bins_only_dark_and_bright_differ() -> None:
    assert window_entropies(cycle(0, 127), (16, 16), 2).item() == 0
    assert window_entropies(cycle(127, 128), (16, 16), 2).item() == 1


def test_windows_have_an_entropy_each() -> None:
    grey = np.block([[FLAT, HALVES, ALL], [QUARTERS, FLAT, HALVES]])
    assert window_entropies(grey, (16, 16)) == pytest.approx(np.array([[0, 1, 8], [2, 0, 1]]))


@pytest.mark.parametrize(
    ("high", "wide", "window", "shape"),
    [
        (28, 28, (28, 28), (1, 1)),
        (56, 28, (28, 28), (2, 1)),
        (29, 57, (28, 28), (2, 3)),  # ⌈29/28⌉ = 2, ⌈57/28⌉ = 3
        (20, 30, (28, 28), (1, 2)),
        (1, 1, (28, 28), (1, 1)),
        (20, 30, (10, 5), (4, 3)),  # a window is wide and high, in this order
    ],
)
def test_as_many_windows_as_patches(high: int, wide: int, window: tuple[int, int], shape: tuple[int, int]) -> None:
    assert window_entropies(np.zeros((high, wide), np.uint8), window).shape == shape


def test_windows_share_what_does_not_divide() -> None:
    """30 columns are two windows of 15 (Eq. 3), not 28 and 2. First both are half black, then the right one is all
    black."""
    grey = np.zeros((20, 30), np.uint8)
    grey[:10] = 255
    assert window_entropies(grey, (28, 28)) == pytest.approx(np.array([[1.0, 1.0]]))
    grey[:, 15:] = 0
    assert window_entropies(grey, (28, 28)) == pytest.approx(np.array([[1.0, 0.0]]))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 20), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_entropy_is_at_most_that_of_as_many_intensities_as_pixels(
    high: int, wide: int, window_wide: int, window_high: int, seed: int
) -> None:
    grey = np.random.default_rng(seed).integers(0, 256, (high, wide)).astype(np.uint8)
    result = window_entropies(grey, (window_wide, window_high))
    assert (result >= 0).all()
    assert (result <= np.log2(min(256, window_wide * window_high)) + 1e-9).all()


@pytest.mark.parametrize(
    ("point", "bits"),
    [
        pytest.param(Point(8, 8), 0, id="top left"),
        pytest.param(Point(24, 8), 1, id="top right"),
        pytest.param(Point(8, 24), 2, id="bottom left"),
        pytest.param(Point(24, 24), 0, id="bottom right"),
        pytest.param(Point(0, 31.9), 2, id="in the corner"),
        pytest.param(Point(0, 32), 2, id="on the corner"),
        pytest.param(Point(32, 0), 1, id="on another corner"),
    ],
)
def test_density_is_the_share_of_the_richest_window(point: Point, bits: float) -> None:
    """Eq. 5: over the greatest of the image, 2 bits, and 1e-6."""
    assert density(point, PICTURE, (16, 16), edge=None) == pytest.approx(bits / 2.000001, rel=1e-9)


@pytest.mark.parametrize(
    ("size", "shape"),
    [
        pytest.param((1920, 1080), (21, 36), id="scaled down"),  # 1000 x 562: ⌈562/28⌉, ⌈1000/28⌉
        pytest.param((1000, 562), (21, 36), id="as it is"),
        pytest.param((500, 281), (21, 36), id="scaled up"),
        pytest.param((1080, 1920), (36, 21), id="upright"),
    ],
)
def test_windows_divide_the_image_of_a_thousand_pixels(size: tuple[int, int], shape: tuple[int, int]) -> None:
    """App. B: "resized so that the longest edge is 1000 pixels". At its own size, 1920 x 1080 has 39 x 69 windows."""
    picture = png(np.zeros((size[1], size[0]), np.uint8))
    assert _entropies(picture, (28, 28), 256, 1000)[0].shape == shape


def test_a_point_is_found_in_the_scaled_image() -> None:
    """2,000 pixels across are 1,000: four windows of 250, of which the last has all the information."""
    grey = np.zeros((1000, 2000), np.uint8)
    grey[::2, 1500:] = 255
    density_at = [density(Point(x, 500), png(grey), (250, 500)) for x in (10, 990, 1510, 2000)]
    assert density_at == pytest.approx([0, 0, 1, 1], abs=0.01)


@pytest.mark.parametrize(
    "point", [Point(-0.1, 24), Point(8, -1), Point(32.1, 8), Point(8, 33), Point(1e30, -1e30)], ids=str
)
def test_outside_of_the_image_there_is_nothing_to_see(point: Point) -> None:
    assert density(point, PICTURE, (16, 16), edge=None) == 0


def test_a_blank_image_has_no_richest_window() -> None:
    assert density(Point(8, 8), png(FLAT), (16, 16)) == 0


@pytest.mark.parametrize(
    ("size", "point", "expected"),
    [
        pytest.param((1000, 500), Point(130, 215), 1.0, id="at the centre"),
        pytest.param((1000, 500), Point(330, 215), 0.8, id="a fifth of the longest edge"),
        pytest.param((1000, 500), Point(430, 615), 0.5, id="aslant"),  # 300² + 400² = 500²
        pytest.param((500, 1000), Point(130, 15), 0.8, id="the longest edge is the height"),
        pytest.param((2000, 1000), Point(330, 215), 0.9, id="a large image"),  # 200 of 2,000 are 100 of 1,000
        pytest.param((500, 250), Point(330, 215), 0.6, id="a small image"),  # 200 of 500 are 400 of 1,000
        pytest.param((1000, 500), Point(1130, 215), 0.0, id="the greatest distance"),
        pytest.param((1000, 500), Point(9000, 9000), 0.0, id="beyond"),
    ],
)
def test_nearness(size: tuple[int, int], point: Point, expected: float) -> None:
    """Eq. 6, the longest edge scaled to 1,000: 1 − distance/1,000."""
    place = PointTarget(box=(100, 200, 160, 230), size=size)
    assert proximity_score([AimedPoint(point, place.region.centre, place)]) == pytest.approx(expected)


def test_no_point_is_near_nothing() -> None:
    assert proximity_score([]) == 0


def score(target: Target, text: str, reward: LpoReward | None = None, picture: bytes | None = None) -> Score:
    return (reward or LpoReward(windows=False)).of_group(target, [read_completion(text)], picture)[0]


SMALL = PointTarget(box=(0, 16, 16, 32), size=(32, 32))
"""The window of 2 bits in PICTURE, with the centre (8, 24)."""
WHOLE = LpoReward(window=(16, 16), edge=None)


@pytest.mark.parametrize(
    ("text", "window", "distance"),
    [
        pytest.param("8 24", 2 / 2.000001, 1, id="at the centre"),
        # 16 of 32 pixels are 500 of 1,000
        pytest.param("24 24", 0, 0.5, id="where there is nothing to see"),
        # (16, −16): 16·√2/32 = .7071
        pytest.param("24 8", 1 / 2.000001, 1 - 0.5 * 2**0.5, id="where there is less to see"),
        pytest.param("8 33", 0, 1 - 9 / 32, id="out of the image"),
        pytest.param("there", 0, 0, id="no point"),
        pytest.param("0 16 16 32", 2 / 2.000001, 1, id="a box"),
    ],
)
def test_a_reward_is_window_times_distance(text: str, window: float, distance: float) -> None:
    """Eq. 8."""
    result = score(SMALL, text, WHOLE, PICTURE)
    assert result.total == pytest.approx(window * distance)
    assert result.parts["window"] == pytest.approx(window)
    assert result.parts["distance"] == pytest.approx(distance)


def test_ablations() -> None:
    assert score(SMALL, "24 8", LpoReward(windows=False)).total == pytest.approx(1 - 0.5 * 2**0.5)
    without_distance = LpoReward(distances=False, window=(16, 16), edge=None)
    assert score(SMALL, "24 8", without_distance, PICTURE).total == pytest.approx(1 / 2.000001)
    assert score(SMALL, "there", without_distance, PICTURE).total == 0


@pytest.mark.parametrize(
    ("target", "text", "total"),
    [
        pytest.param(CLICK, 'do(action="Click At", x=330, y=215)', 0.8, id="click"),
        pytest.param(CLICK, 'do(action="Scroll At", x=130, y=215, dy=9)', 0.0, id="another kind of action"),
        pytest.param(CLICK, 'do(action="Drag At", x=130, y=215, to_x=130, to_y=215)', 0.0, id="drag where to click"),
        pytest.param(CLICK, "click there", 0.0, id="no action"),
        pytest.param(SCROLL, "scroll_at [330] [215] [0] [100]", 0.8, id="scroll"),
        pytest.param(SCROLL, "scroll_at [330] [215] [0] [-300]", 0.8, id="another amount of the same type"),  # Eq. 7
        pytest.param(DRAG, 'do(action="Drag At", x=10, y=20, to_x=130, to_y=215)', 1.0, id="drag"),
    ],
)
def test_steps(target: StepTarget, text: str, total: float) -> None:
    assert score(target, text).total == pytest.approx(total)


@pytest.mark.parametrize(
    ("text", "total"),
    [
        pytest.param('do(action="Drag At", x=210, y=20, to_x=130, to_y=215)', 0.9, id="the start is off"),  # .8 and 1
        pytest.param('do(action="Drag At", x=10, y=20, to_x=330, to_y=215)', 0.9, id="the end is off"),  # 1 and .8
        pytest.param('do(action="Drag At", x=210, y=20, to_x=330, to_y=215)', 0.8, id="both are off"),
    ],
)
def test_a_drag_is_worth_the_mean_of_its_points(text: str, total: float) -> None:
    """Eq. 7: the mean of 1 − distance/1,000 over the points that the action names, each against its own."""
    assert score(DRAG, text).total == pytest.approx(total)


@pytest.mark.parametrize("reward", ["location", "text", "radius", "box"])
@pytest.mark.parametrize("name", ["Right Click At", "Double Click At"])
def test_another_click_at_the_right_point_gets_less_than_the_right_one(name: str, reward: str) -> None:
    judged = LpoReward.model_validate({"reward": reward, "windows": False})
    assert score(CLICK, 'do(action="Click At", x=130, y=215)', judged).total == 1
    assert score(CLICK, f'do(action="{name}", x=130, y=215)', judged).total < 1


@pytest.mark.parametrize(
    ("kind", "text", "total"),
    [
        pytest.param("text", "130 215", 1, id="text: equal"),
        pytest.param("text", "130.0, 215.0", 1, id="text: equal as numbers"),
        pytest.param("text", "131 215", 0, id="text: a pixel off"),
        pytest.param("text", "there", 0, id="text: no point"),
        pytest.param("box", "160 230", 1, id="box: inside"),
        pytest.param("box", "161 230", 0, id="box: outside"),
        pytest.param("radius", "270 215", 1, id="radius: 140"),
        pytest.param("radius", "271 215", 0, id="radius: 141"),
        pytest.param("radius", "214 327", 1, id="radius: 140 aslant"),  # 84² + 112² = 140²
        pytest.param("radius", "there", 0, id="radius: no point"),
    ],
)
def test_what_it_is_compared_with(kind: str, text: str, total: float) -> None:
    assert score(POINT, text, LpoReward.model_validate({"reward": kind})).total == total


THOUGHT = "<think>t</think><answer>{}</answer>"


@pytest.mark.parametrize(
    ("kind", "target", "text", "total"),
    [
        pytest.param("box", POINT, THOUGHT.format("130 215"), 3, id="UI-R1: all"),
        pytest.param("box", POINT, THOUGHT.format("1 1"), 2, id="UI-R1: type and format"),
        pytest.param("box", POINT, "130 215", 2, id="UI-R1: no format"),
        pytest.param("box", POINT, "there", 0, id="UI-R1: nothing"),
        pytest.param("box", CLICK, THOUGHT.format('do(action="Click At", x=9, y=9)'), 2, id="UI-R1: a click beside it"),
        pytest.param("box", CLICK, THOUGHT.format('do(action="Press Enter")'), 1, id="UI-R1: another action"),
        pytest.param("box", TYPE, 'do(action="Type", argument="B.", element="7")', 1, id="UI-R1: another text"),
        pytest.param("overlap", POINT, THOUGHT.format("100 200 160 230"), 3, id="InfiGUI-R1: the box"),
        pytest.param("overlap", POINT, THOUGHT.format("100 200 130 230"), 2, id="InfiGUI-R1: half of it"),
        pytest.param("overlap", POINT, THOUGHT.format("101 201"), 3, id="InfiGUI-R1: a point"),
        pytest.param("radius", POINT, THOUGHT.format("270 215"), 3, id="GUI-R1: within the radius"),
        pytest.param("radius", POINT, "271 215", 1, id="GUI-R1: type"),
    ],
)
def test_the_rivals_add_type_and_format(kind: str, target: Target, text: str, total: float) -> None:
    reward = LpoReward.model_validate({"reward": kind, "type_weight": 1, "format_weight": 1})
    assert score(target, text, reward).total == total
    assert reward.max_reward == 3


def test_a_radius_grows_with_the_image() -> None:
    """70 of 1,000 are 140 pixels of 2,000."""
    place = PointTarget(box=(100, 200, 160, 230), size=(2000, 300))
    assert [score(place, text, LpoReward(reward="radius", radius=70)).total for text in ("270 215", "271 215")] == [
        1,
        0,
    ]


def test_the_text_of_a_step_is_that_of_its_action() -> None:
    """The element's centre is (12.5, 12.5), and the demonstration clicked at (12, 12): matching that text is right."""
    step = StepTarget(action=ClickAt(x=12, y=12), places=(PointTarget(box=(0, 0, 25, 25), size=(100, 100)),))
    assert score(step, 'do(action="Click At", x=12, y=12)', LpoReward(reward="text")).total == 1


@pytest.mark.parametrize("target", [MAZE, SUDOKU_4], ids=lambda it: it.kind)
def test_what_is_not_on_a_screen_is_refused(target: Target) -> None:
    with pytest.raises(BadInput, match="positions on a screen"):
        score(target, "130 215")


@pytest.mark.parametrize(
    ("target", "right", "wrong"),
    [
        pytest.param(TYPE, 'do(action="Type", argument="Ada L.", element="7")', "130 215", id="typing"),
        pytest.param(
            StepTarget(action=CLICK.action),
            'do(action="Click At", x=130, y=215)',
            'do(action="Click At", x=131, y=215)',
            id="a click without a place",
        ),
    ],
)
def test_a_step_that_no_place_judges_is_right_or_not(target: Target, right: str, wrong: str) -> None:
    assert [score(target, text).total for text in (right, wrong)] == [1, 0]


def test_windows_need_an_image() -> None:
    with pytest.raises(BadInput, match=r"reward\.windows=false"):
        score(POINT, "130 215", LpoReward())
    assert score(POINT, "130 215", LpoReward(reward="box")).total == 1


DATA = PICTURE.index(b"IDAT")
BROKEN = PICTURE[: DATA - 4] + (int.from_bytes(PICTURE[DATA - 4 : DATA]) - 8).to_bytes(4) + PICTURE[DATA:]
"""The file says that its pixels end eight bytes too early, so that what follows is no chunk of a PNG."""


@pytest.mark.parametrize(
    "picture",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"not a picture", id="no picture"),
        pytest.param(PICTURE[:40], id="no pixels"),
        pytest.param(PICTURE[:-30], id="cut off"),
        pytest.param(BROKEN, id="broken"),
    ],
)
def test_an_unreadable_image_is_reported(picture: bytes) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        score(SMALL, "8 24", WHOLE, picture)


@pytest.mark.parametrize("window", [(0, 28), (28, 0), (-28, 28)], ids=str)
def test_a_window_without_pixels_is_refused(window: tuple[int, int]) -> None:
    with pytest.raises(ValidationError):
        LpoReward(window=window)


@given(st.floats(-10, 42), st.floats(-10, 42))
def test_nothing_is_worth_more_than_the_centre_of_the_richest_window(x: float, y: float) -> None:
    best, result = (score(SMALL, text, WHOLE, PICTURE).total for text in ("8 24", f"{x:.2f} {y:.2f}"))
    assert 0 <= result <= best <= 1
