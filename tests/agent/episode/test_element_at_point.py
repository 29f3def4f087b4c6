"""Which control a point means, and which action is done where none is."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agent.episode.element_at_point import NEAR, Found, as_described, control_at, placed
from envs.core.actions import Action, Click, ClickAt, Drag, DragAt, Hover, Scroll, ScrollAt, Select, Type, Upload
from envs.core.grounding import UNGROUNDED, ControlField, Grounding
from envs.core.observation import Box, Element, ElementKey, Observation, Surface
from models.vision.coordinates import Point
from tests.agent.episode.test_prompts import OBSERVATION


def element(ref: int, role: str, box: Box | None, tag: str = "", options: tuple[str, ...] = ()) -> Element:
    key = ElementKey("", role, f"{role} {ref}", 0, "0" * 8)
    return Element(ref, key, tag or role, (), None, options, box, shown=True)


ROW = element(1, "clickable", Box(0, 0, 200, 40), "div")
BUTTON = element(2, "button", Box(150, 10, 20, 20))
FIELD = element(3, "textbox", Box(10, 60, 100, 20), "input")
LIST = element(4, "combobox", Box(10, 100, 100, 20), "select", ("S", "M"))
UNDRAWN = element(5, "link", None)
PAGE = replace(OBSERVATION, elements=(ROW, BUTTON, FIELD, LIST, UNDRAWN), viewport=(400, 300))
FILE = replace(PAGE, elements=(element(1, "file", Box(0, 0, 50, 20), "input"),))
CLICK, TYPE = Click(ref=UNGROUNDED), Type(ref=UNGROUNDED, text="x")


def found(action: Action, point: Point, observation: Observation = PAGE, field: ControlField = "ref") -> Found:
    """As the boxes say."""
    return asyncio.run(control_at(point, observation, action, field, None))


@pytest.mark.parametrize(
    ("action", "point", "ref", "by"),
    [
        (CLICK, Point(160, 20), 2, "hit"),  # the smallest box
        (CLICK, Point(100, 20), 1, "hit"),
        (CLICK, Point(115, 70), 3, "near"),
        (TYPE, Point(60, 48), 3, "near"),
        (TYPE, Point(60, 38), 1, "hit"),  # too far from the field: the action says that the row takes no text
        (Select(ref=UNGROUNDED, option="M"), Point(60, 92), 4, "near"),
        (Hover(ref=UNGROUNDED), Point(160, 20), 2, "hit"),
        (CLICK, Point(300, 200), None, "point"),
    ],
)
def test_a_point_means_the_control_that_the_action_can_use(
    action: Action, point: Point, ref: int | None, by: str
) -> None:
    seen = found(action, point)
    assert (seen.element.ref if seen.element else None, seen.by) == (ref, by)
    assert seen.distance <= NEAR


def test_an_upload_means_a_control_that_takes_a_file() -> None:
    seen = found(Upload(ref=UNGROUNDED, path="a.txt"), Point(60, 10), FILE)
    assert seen.element is FILE.elements[0]


def test_in_a_drawn_area_the_point_itself_counts() -> None:
    observation = replace(PAGE, surfaces=(Surface("canvas", "", Box(110, 50, 200, 200)),))
    assert found(CLICK, Point(113, 70), observation).by == "point"


def test_the_page_decides_which_of_two_layers_is_meant() -> None:
    """The button lies under the row where the page says so, and a near control that is covered is not taken."""

    async def row(x: float, y: float) -> int | None:
        return 1

    async def nothing(x: float, y: float) -> int | None:
        return None

    assert asyncio.run(control_at(Point(160, 20), PAGE, CLICK, "ref", row)).element is ROW
    covered = asyncio.run(control_at(Point(160, 20), PAGE, CLICK, "ref", nothing))
    assert covered.element is BUTTON, "the action will say that it is covered"
    assert asyncio.run(control_at(Point(115, 70), PAGE, CLICK, "ref", nothing)).by == "point"


def at(x: float, y: float, element: Element | None = None) -> Found:
    return Found(Point(x, y), "hit" if element else "point", element)


@pytest.mark.parametrize(
    ("action", "spots", "done"),
    [
        (Click(ref=0, count=2), [at(1, 2, FIELD)], Click(ref=3, count=2)),
        (Click(ref=0, button="right"), [at(1.26, 2)], ClickAt(x=1.3, y=2, button="right")),
        (Drag(ref=0, to_ref=0), [at(1, 2, FIELD), at(3, 4, LIST)], Drag(ref=3, to_ref=4)),
        (Drag(ref=0, to_ref=0), [at(1, 2, FIELD), at(3, 4)], DragAt(x=1, y=2, to_x=3, to_y=4)),
        (Scroll(direction="up", ref=0), [at(1, 2)], ScrollAt(x=1, y=2, dx=0, dy=-240)),
        (Scroll(direction="right", ref=0), [at(1, 2)], ScrollAt(x=1, y=2, dx=320, dy=0)),
        (TYPE, [at(1, 2)], None),
        (Hover(ref=0), [at(1, 2)], None),
    ],
)
def test_an_action_names_controls_or_points(action: Action, spots: list[Found], done: Action | None) -> None:
    fields: tuple[ControlField, ...] = ("ref", "to_ref")
    assert placed(action, list(zip(fields, spots, strict=False)), PAGE) == done
    if done is not None:
        groundings = [
            Grounding(field=field, description="d", point=spot.point, by=spot.by)
            for field, spot in zip(fields, spots, strict=False)
        ]
        assert as_described(done, groundings) == action


def test_an_action_without_descriptions_stays_as_it_is() -> None:
    assert as_described(ClickAt(x=1, y=2), ()) == ClickAt(x=1, y=2)
    assert as_described(Click(ref=7), ()) == Click(ref=7)
