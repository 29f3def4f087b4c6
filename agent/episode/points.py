"""Actions at points of the view: offered only where the prompt shows the view's size and the boxes to aim at.

A page has boxes if it draws an area in which no control can be numbered, or if the run observes boxes (set-of-marks).
Elsewhere a model could only guess coordinates.
"""

from __future__ import annotations

from typing import Final

from envs.core import actions as act
from envs.core.actions import Action
from envs.core.observation import Box, Observation
from models.prompting.invisible_characters import visible
from models.prompting.prompt_text import PromptText, cut, fenced_lines, folded, joined, number, own, words

BOXES: Final = 100
"""Controls in the view whose boxes are listed; the rest are counted."""
NAME_CHARS: Final = 60
NOT_OFFERED: Final = (
    "this page has no drawn area, so its view and boxes are not shown and actions at points of it are not offered. "
    "Name a control by its number"
)


def offers_points(observation: Observation) -> bool:
    """Whether the prompt for *observation* lists boxes."""
    return bool(observation.surfaces) or any(element.box is not None for element in observation.elements)


def is_at_point(action: Action) -> bool:
    """Whether *action* names a point of the view."""
    return isinstance(action, act.ClickAt | act.DragAt | act.ScrollAt)


def points_text(observation: Observation, pixels: str) -> PromptText | None:
    """Renders the actions *pixels* of a language with the view and its boxes; None where they are not offered."""
    if not offers_points(observation):
        return None
    width, height = observation.viewport
    head = words(
        "Points of the view\nThese actions name a point in pixels from the left and the top of the view, which is "
    )
    size = (number(width), words(" wide and "), number(height), words(" high:\n"))
    shown = [e for e in observation.elements if e.box is not None and e.shown and _is_in_view(e.box, width, height)]
    lines = [_surface(s.kind, s.name, s.box) for s in observation.surfaces]
    lines += [f"[{e.ref}]: {_numbers(e.box)}" for e in shown[:BOXES] if e.box is not None]
    boxes = fenced_lines("boxes", lines)
    more = len(shown) - BOXES
    counted = [words("\nand ") + number(more) + words(" more controls in the view")] if more > 0 else []
    return joined("", (head, *size, own(pixels), words("\nBoxes: x, y, width, height\n"), boxes, *counted))


def _surface(kind: str, name: str, box: Box) -> str:
    return f'{kind} "{cut(folded(visible(name)), NAME_CHARS)}": {_numbers(box)}'


def _numbers(box: Box) -> str:
    return ", ".join(str(round(value)) for value in box)


def _is_in_view(box: Box, width: int, height: int) -> bool:
    return box.x < width and box.y < height and box.x + box.width > 0 and box.y + box.height > 0
