"""Finds the control that a grounder's point means, and the action at the point where no control does.

The page says which control a click at the point reaches, so layers, labels and frames count as they do for a
person. Where no browser session can be asked, the boxes of the observation decide.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from envs.core import actions as act
from envs.core.action_languages.base import Direction
from envs.core.action_languages.choices import page_choices
from envs.core.actions import Action
from envs.core.grounding import UNGROUNDED, ControlField, FoundBy, Grounding
from envs.core.observation import Box, Element, Observation
from models.vision.coordinates import Point

NEAR: Final = 16.0
"""CSS pixels around a point that is on no control that the action can use, in which the nearest such control counts."""
_INSET: Final = 1.0
"""CSS pixels inside a control's edge, where it is asked whether the control is on top."""
SCROLLED: Final = 0.8
"""Share of the view by which the wheel scrolls at a point."""

ControlAt = Callable[[float, float], Awaitable[int | None]]
"""The number of the control that a click at a point reaches; None for none."""


@dataclass(frozen=True, slots=True)
class Found:
    """What lies at a point."""

    point: Point
    by: FoundBy
    element: Element | None
    """None with `point`."""
    distance: float = 0.0


async def control_at(
    point: Point, observation: Observation, action: Action, field: ControlField, reached: ControlAt | None
) -> Found:
    """The control that *point* means as *field* of *action*: what lies there if the action can use it, else the nearest
    one within NEAR that it can use, else what lies there. *reached*: asks the page; None: boxes decide.

    A control whose box holds the point counts also where the page says that a click does not reach it: the action then
    ends with the reason, and nothing is clicked in its place."""
    usable = _usable(action, field, observation)
    ask = reached or _by_boxes(observation, usable)
    hit = _shown(observation, await ask(*point))
    if hit is not None and hit.ref in usable:
        return Found(point, "hit", hit)
    if hit is None and _is_drawn(observation, point):
        return Found(point, "point", None)
    for element, distance in _nearest(point, [e for e in observation.elements if e.ref in usable]):
        if (hit is None and distance == 0) or await ask(*_closest(point, element.box)) == element.ref:
            return Found(point, "near", element, round(distance, 1))
    return Found(point, "point" if hit is None else "hit", hit)


def placed(action: Action, found: Sequence[tuple[ControlField, Found]], observation: Observation) -> Action | None:
    """*action* with the numbers of the controls that were *found*; at the points where one is none. None if this kind
    of action needs a control."""
    if all(each.element is not None for _, each in found):
        numbers = {field: each.element.ref for field, each in found if each.element is not None}
        return action.model_copy(update=numbers)
    (x, y), *others = (_rounded(each.point) for _, each in found)
    match action:
        case act.Click(button=button, count=count):
            return act.ClickAt(x=x, y=y, button=button, count=count)
        case act.Drag() if others:
            return act.DragAt(x=x, y=y, to_x=others[0].x, to_y=others[0].y)
        case act.Scroll(direction=direction):
            across, down = _wheel(direction, observation.viewport)
            return act.ScrollAt(x=x, y=y, dx=across, dy=down)
        case _:
            return None


def as_described(action: Action, groundings: Sequence[Grounding]) -> Action:
    """The action as the policy wrote it, before its controls were found: the inverse of :func:`placed`."""
    match action:
        case act.ClickAt(button=button, count=count) if groundings:
            return act.Click(ref=UNGROUNDED, button=button, count=count)
        case act.DragAt() if groundings:
            return act.Drag(ref=UNGROUNDED, to_ref=UNGROUNDED)
        case act.ScrollAt(dx=dx, dy=dy) if groundings:
            return act.Scroll(direction=_direction(dx, dy), ref=UNGROUNDED)
        case _:
            return action.model_copy(update={grounding.field: UNGROUNDED for grounding in groundings})


def _usable(action: Action, field: ControlField, observation: Observation) -> frozenset[int]:
    """Numbers of the controls that the action can be about; all where it is not about one kind."""
    if field == "ref" and isinstance(action, act.Type | act.Select | act.Upload):
        choices = page_choices(observation)
        match action:
            case act.Type():
                return frozenset(choices.fields)
            case act.Select():
                return frozenset(number for number, _ in choices.lists)
            case act.Upload():
                return frozenset(choices.file_fields)
    return frozenset(element.ref for element in observation.elements)


def _shown(observation: Observation, ref: int | None) -> Element | None:
    return None if ref is None else observation.element(ref)


def _by_boxes(observation: Observation, usable: frozenset[int]) -> ControlAt:
    """Takes the smallest control whose box holds a point, of those that can be used if there are any."""

    async def reached(x: float, y: float) -> int | None:
        hit = [e for e in observation.elements if e.box is not None and _distance(Point(x, y), e.box) == 0]
        best = [element for element in hit if element.ref in usable] or hit
        return min(best, key=lambda element: element.area).ref if best else None

    return reached


def _is_drawn(observation: Observation, point: Point) -> bool:
    """Whether the point is in a drawn area, in which no control has a number."""
    return any(_distance(point, surface.box) == 0 for surface in observation.surfaces)


def _nearest(point: Point, elements: Sequence[Element]) -> list[tuple[Element, float]]:
    """The elements within NEAR, the nearest first; of equally near ones the smallest."""
    near = [(e, distance) for e in elements if e.box is not None and (distance := _distance(point, e.box)) <= NEAR]
    return sorted(near, key=lambda pair: (pair[1], pair[0].area))


def _distance(point: Point, box: Box) -> float:
    """CSS pixels from the point to the box; 0 inside."""
    right, bottom = box.x + box.width, box.y + box.height
    return math.hypot(max(box.x - point.x, 0.0, point.x - right), max(box.y - point.y, 0.0, point.y - bottom))


def _closest(point: Point, box: Box | None) -> Point:
    """The point of the box that is nearest to *point*, a little inside its edge."""
    assert box is not None
    return Point(_clamped(point.x, box.x, box.width), _clamped(point.y, box.y, box.height))


def _clamped(value: float, start: float, extent: float) -> float:
    inset = min(_INSET, extent / 2)
    return min(max(value, start + inset), start + extent - inset)


def _rounded(point: Point) -> Point:
    return Point(round(point.x, 1), round(point.y, 1))


def _wheel(direction: Direction, view: tuple[int, int]) -> tuple[float, float]:
    width, height = round(SCROLLED * view[0]), round(SCROLLED * view[1])
    match direction:
        case "up":
            return 0.0, -height
        case "down":
            return 0.0, height
        case "left":
            return -width, 0.0
        case "right":
            return width, 0.0


def _direction(across: float, down: float) -> Direction:
    if across:
        return "left" if across < 0 else "right"
    return "up" if down < 0 else "down"
