"""Actions at points of the view: offered only where the model sees a picture of the view, or its size and boxes to aim
at.

A page has boxes if it draws an area in which no control can be numbered, or if the run observes boxes. Elsewhere a
model could only guess coordinates.

A model that sees a picture names points in its own coordinates (:mod:`models.vision.profiles`). Its prompt and its
answers are converted here; everything else, traces included, has CSS pixels of the view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, LiteralString

from envs.core import actions as act
from envs.core.actions import Action
from envs.core.observation import Box, Observation
from envs.core.past_actions import PastAction
from models.prompting.invisible_characters import visible
from models.prompting.prompt_text import PromptText, cut, fenced_lines, folded, joined, number, own, words
from models.vision.coordinates import CoordinateSpace, Corners, ImageFrame, Point

BOXES: Final = 100
"""Controls in the view whose boxes are listed; the rest are counted."""
NAME_CHARS: Final = 60
NOT_OFFERED: Final = (
    "this page has no drawn area, so its view and boxes are not shown and actions at points of it are not offered. "
    "Name a control by its number"
)


def offers_points(observation: Observation, scale: PointScale | None = None) -> bool:
    """Whether the prompt for *observation* offers actions at points: it lists boxes, or has a picture (*scale*)."""
    return (
        scale is not None
        or bool(observation.surfaces)
        or any(element.box is not None for element in observation.elements)
    )


def is_at_point(action: Action) -> bool:
    """Whether *action* names a point of the view."""
    return isinstance(action, act.ClickAt | act.DragAt | act.ScrollAt)


@dataclass(frozen=True, slots=True)
class PointScale:
    """The coordinates in which one model names points of the picture that it is shown."""

    space: CoordinateSpace
    frame: ImageFrame

    def to_view(self, action: Action) -> Action:
        """An *action* of the model, with its points in CSS pixels. Scroll distances are CSS pixels already."""
        return _with_points(action, lambda point: self.frame.to_view(self.space, point))

    def to_model(self, past: PastAction) -> PastAction:
        """A committed action with its points in the model's coordinates, for the log in its prompt."""
        return replace(past, action=_with_points(past.action, lambda point: self.frame.to_model(self.space, point)))

    def box(self, box: Box) -> str:
        """Left, top, width and height of *box* in the model's coordinates."""
        corners = Corners(box.x, box.y, box.x + box.width, box.y + box.height)
        digits = 0 if self.space is not CoordinateSpace.UNIT else self.frame.digits(self.space)
        left, top, right, bottom = self.frame.box_to_model(self.space, corners, digits)
        return ", ".join(f"{value:.{digits}f}" for value in (left, top, right - left, bottom - top))

    def axes(self) -> PromptText:
        """What the numbers of a point mean."""
        wide, high = self.frame.extent(self.space)
        match self.space:
            case CoordinateSpace.PIXELS | CoordinateSpace.RESIZED:
                size = (number(int(wide)), words(" wide and "), number(int(high)), words(" high"))
                return joined("", (words("in pixels from the left and the top of the picture, which is "), *size))
            case CoordinateSpace.THOUSAND:
                return _axes("1000")
            case CoordinateSpace.UNIT:
                return _axes("1")


def _axes(end: LiteralString) -> PromptText:
    return words(
        "in numbers from 0 to " + end + ", across from the left to the right of the picture and down from its top to "
        "its bottom"
    )


def _with_points(action: Action, convert: Callable[[Point], Point]) -> Action:
    """*action* with its points converted."""
    match action:
        case act.ClickAt() | act.ScrollAt():
            x, y = convert(Point(action.x, action.y))
            return action.model_copy(update={"x": x, "y": y})
        case act.DragAt():
            (x, y), (to_x, to_y) = convert(Point(action.x, action.y)), convert(Point(action.to_x, action.to_y))
            return action.model_copy(update={"x": x, "y": y, "to_x": to_x, "to_y": to_y})
        case _:
            return action


def points_text(observation: Observation, pixels: str, scale: PointScale | None = None) -> PromptText | None:
    """Renders the actions *pixels* of a language with the view and its boxes; None where they are not offered.

    *scale*: the coordinates of the model that sees the view; None for CSS pixels.
    """
    if not offers_points(observation, scale):
        return None
    width, height = observation.viewport
    shown = [e for e in observation.elements if e.box is not None and e.shown and _is_in_view(e.box, width, height)]
    lines = [_surface(s.kind, s.name, _numbers(s.box, scale)) for s in observation.surfaces]
    lines += [f"[{e.ref}]: {_numbers(e.box, scale)}" for e in shown[:BOXES] if e.box is not None]
    boxes = (words("\nBoxes: x, y, width, height\n"), fenced_lines("boxes", lines)) if lines else ()
    more = len(shown) - BOXES
    counted = [words("\nand ") + number(more) + words(" more controls in the view")] if more > 0 else []
    head = (words("Points of the view\nThese actions name a point "), _axes_of(observation, scale), words(":\n"))
    return joined("", (*head, own(pixels), *boxes, *counted))


def _axes_of(observation: Observation, scale: PointScale | None) -> PromptText:
    if scale is not None:
        return scale.axes()
    width, height = observation.viewport
    size = (number(width), words(" wide and "), number(height), words(" high"))
    return joined("", (words("in pixels from the left and the top of the view, which is "), *size))


def _surface(kind: str, name: str, box: str) -> str:
    return f'{kind} "{cut(folded(visible(name)), NAME_CHARS)}": {box}'


def _numbers(box: Box, scale: PointScale | None) -> str:
    return ", ".join(str(round(value)) for value in box) if scale is None else scale.box(box)


def _is_in_view(box: Box, width: int, height: int) -> bool:
    return box.x < width and box.y < height and box.x + box.width > 0 and box.y + box.height > 0
