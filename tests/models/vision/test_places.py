"""Coordinates as grounding models write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.vision.places import numbers_in, places_in
from tests.training.grpo.rewards.examples import POINT
from training.grpo.rewards import PointTarget, is_right, read_completion
from training.grpo.rewards.targets import parse_box, parse_point

BOX = (100, 200, 160, 230)
"""The box of `POINT`; its centre is (130, 215)."""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"point_2d":[130,215]}', id="Qwen2.5-VL's point"),
        pytest.param('[{"point_2d": [130, 215], "label": "the 2nd of 3 buttons"}]', id="a list, with a label"),
        pytest.param('```json\n{"point_2d": [130, 215]}\n```', id="in a code fence"),
        pytest.param("```json\n[\n\t{'point_2d': ['130', '215']}\n]\n```", id="quoted numbers, single quotes"),
        pytest.param('{"bbox_2d": [100, 200, 160, 230], "label": "OK"}', id="Qwen2.5-VL's box"),
        pytest.param("json \n [bbox_2d: [100, 200, 160, 230], label: OK] \n", id="GuirlVG, App. A.1"),
        pytest.param("<|box_start|>(100,200),(160,230)<|box_end|>", id="Qwen2-VL's box"),
        pytest.param("(100,200),(160,230)", id="Qwen2-VL's box, its special tokens skipped"),
        pytest.param("click(start_box='(130,215)')", id="UI-TARS"),
        pytest.param('{"action": "left_click", "coordinate": [130, 215]}', id="computer use"),
        pytest.param('<point x="130" y="215" alt="button 2">button 2</point>', id="Molmo's tag"),
        pytest.param("pyautogui.click(x=130, y=215)", id="Python, named"),
        pytest.param("pyautogui.click(130, 215)", id="Python"),
        pytest.param('{"x": 130, "y": 215, "confidence": 0.9}', id="x and y with a third number"),
        pytest.param("{'element': {'x': 130, 'y': 215}, 'id': 7}", id="nested"),
        pytest.param("x1=130, y1=215", id="x1 and y1"),
        pytest.param("x1=100, y1=200, x2=160, y2=230", id="corners, named"),
        pytest.param("x_min: 100 y_min: 200 x_max: 160 y_max: 230", id="corners, otherwise named"),
        pytest.param('{"x": 100, "y": 200, "width": 60, "height": 30}', id="corner and size"),
        pytest.param('{"cx": 130, "cy": 215, "w": 60, "h": 30}', id="centre and size"),
        pytest.param("width: 1920, height: 1080, x: 130, y: 215", id="the size of the screen"),
        pytest.param("X: 130\nY: 215", id="capitals, two lines"),
        pytest.param("[[130, 215]]", id="a list of one point"),
        pytest.param("[[100, 200], [160, 230]]", id="a list of corners"),
        pytest.param("the 2 buttons: the one meant is at (130,215)", id="another number before"),
        pytest.param("(130, 215) is the 2nd of 3", id="other numbers behind"),
        pytest.param("2. (130, 215)", id="a numbered list"),
        pytest.param("It is the 3rd button of 4: 130, 215", id="other numbers, no brackets"),
        pytest.param("In the 1920x1080 screenshot: 130, 215", id="a resolution"),
        pytest.param("130px, 215 px", id="units"),
        pytest.param("（130，215）", id="full-width brackets and comma"),
        pytest.param("１３０，２１５", id="full-width digits"),
        pytest.param("［１３０　２１５］", id="full-width digits, brackets and space"),
        pytest.param("【130、215】", id="Chinese brackets and comma"),
        pytest.param("坐标：「130，215」", id="Japanese brackets in a sentence"),
        pytest.param('｛"point_2d"：［130，215］｝', id="JSON in full-width characters"),
        pytest.param("x＝130，y＝215", id="named, full-width"),
        pytest.param("**(130.0 , 215.0)**.", id="Markdown"),
        pytest.param("[130 215]", id="white space"),
        pytest.param("x is 130 and y is 215", id="two numbers in a sentence"),
        pytest.param("at...130, 215", id="dots before"),
        pytest.param("1.3e2, 215", id="an exponent"),
        pytest.param("[1.30E+02, 2.15e+02]", id="exponents with a sign"),
        pytest.param("x=1.3e2, y=215", id="an exponent, named"),
    ],
)
def test_an_answer_in_a_models_own_format_is_read(text: str) -> None:
    assert parse_point(read_completion(text)) == (130, 215)
    assert parse_point(read_completion(f"<think>1, 2</think><answer>{text}</answer>")) == (130, 215)


@pytest.mark.parametrize(
    "text",
    [
        '{"bbox_2d": [100, 200, 160, 230]}',
        '```json\n[{"bbox_2d": [100, 200, 160, 230], "label": "button 2"}]\n```',
        "(100, 200), (160, 230)",
        "(100, 200) to (160, 230)",
        "the 2nd: [100, 200, 160, 230]",
        "x1=100; y1=200; x2=160; y2=230",
        "left=100, top=200, right=160, bottom=230",
        "cx=130, cy=215, width=60, height=30",
        '{"bbox": {"x": 100, "y": 200, "width": 60, "height": 30}}',
        '{"bbox": {"height": 30, "width": 60, "x": 100, "y": 200}}',
        '{"bbox": [100, 200], "width": 60, "height": 30}',
        "bounding box: (100, 200), width 60, height 30",
        '{"bbox_2d": [100, 200, 160, 230], "point_2d": [101, 201]}',
    ],
)
def test_a_box_in_a_models_own_format_is_read(text: str) -> None:
    assert parse_box(read_completion(text)) == BOX


@pytest.mark.parametrize("minus", list("-−–‒‐‑﹣－⁻"), ids=lambda sign: f"U+{ord(sign):04X}")
def test_a_unicode_minus_is_a_sign(minus: str) -> None:
    assert parse_point(read_completion(f"{minus}130, 215")) == (-130, 215)
    assert not is_right(POINT, read_completion(f"({minus}130, 215)"))
    assert parse_point(read_completion(f"({minus}130,{minus}215)")) == (-130, -215)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("the button", id="words"),
        pytest.param("130", id="one number"),
        pytest.param("130 215 1", id="three numbers"),
        pytest.param("100 200 160 230 1", id="five numbers"),
        pytest.param("(130, 215, 1)", id="three in brackets"),
        pytest.param("(10, 20), (30, 40) and (130, 215)", id="three points"),
        pytest.param('[{"point_2d": [10, 20]}, {"point_2d": [130, 215]}, {"point_2d": [1, 2]}]', id="a list of three"),
        pytest.param("version 1.2.3", id="a version"),
        pytest.param("bbox_2d, x1, 3D, 2nd, 1920x1080, v2", id="names"),
        pytest.param("1e9, 1e9", id="exponents"),
    ],
)
def test_no_point_and_several_points_are_none(text: str) -> None:
    assert parse_point(read_completion(text)) is None


def test_the_same_place_twice_is_one() -> None:
    assert places_in("(130, 215), that is (130, 215), is the 2nd") == ((130, 215),)


def test_a_digit_of_a_name_is_no_number() -> None:
    assert numbers_in('{"bbox_2d": [1, 2, 3, 4], "x1": 5}') == (1, 2, 3, 4, 5)
    assert numbers_in("10-20, 100–160") == (10, 20, 100, 160), "ranges have no sign"


coordinates = st.integers(-2000, 2000)
WAYS = (
    '{{"point_2d": [{}, {}]}}',
    '```json\n[{{"point_2d": [{}, {}], "label": "2 of 3"}}]\n```',
    "x={}, y={}",
    "the 4 buttons: ({},{})",
    "{} {}",
    '{{"x": {}, "y": {}, "n": 5}}',
)


@given(coordinates, coordinates, st.sampled_from(WAYS))
def test_a_point_means_the_same_however_it_is_written(x: int, y: int, way: str) -> None:
    completion = read_completion(way.format(x, y))
    assert parse_point(completion) == (x, y)
    assert is_right(PointTarget(box=(100, 200, 160, 230), size=(1000, 500)), completion) is (
        100 <= x <= 160 and 200 <= y <= 230
    )


@given(st.text() | st.text(alphabet='0123456789.,-−()[]{}xy1"=: \n'))
def test_any_text_can_be_read(text: str) -> None:
    assert all(len(place) in (2, 4) for place in places_in(text))
