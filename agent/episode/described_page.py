"""The page's text for a policy that describes controls in words: without numbers, with what is outside the view."""

from __future__ import annotations

import re
from typing import Final

from envs.core.observation import Box, Observation

_NUMBER: Final = re.compile(r"(?<!\\)\[(\d+)\] (?=[\w-])")
"""The number before a control. Page text that looks like one has a backslash before it."""


def places_for_numbers(text: str, observation: Observation) -> str:
    """Replaces the number before each control of *text* by where it is if it is not in the view: `(below the view)`."""
    return _NUMBER.sub(lambda found: _place(observation, int(found[1])), text)


def _place(observation: Observation, ref: int) -> str:
    element = observation.element(ref)
    outside = "not in the view" if element is None or element.box is None else _side(element.box, observation.viewport)
    return f"({outside}) " if outside else ""


def _side(box: Box, view: tuple[int, int]) -> str:
    """Where a box outside the view is; empty for one of which some is inside."""
    if box.y >= view[1]:
        return "below the view"
    if box.y + box.height <= 0:
        return "above the view"
    if box.x >= view[0]:
        return "right of the view"
    return "left of the view" if box.x + box.width <= 0 else ""
