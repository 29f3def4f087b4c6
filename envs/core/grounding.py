"""Controls that a policy describes in words, and how a grounder found them on a screenshot.

An action whose control is described holds UNGROUNDED in place of the number until a grounder has found the control.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from envs.core.record import Record

UNGROUNDED: Final = 0
"""Stands for the number of a described control; no control has it."""
ControlField = Literal["ref", "to_ref"]
"""Field of an action that holds the number of a control."""
CONTROL_FIELDS: Final[tuple[ControlField, ...]] = ("ref", "to_ref")
FoundBy = Literal["hit", "near", "point"]
"""`hit`: the control lies at the point. `near`: it is the nearest control that the action can use. `point`: there is
none, so the action was done at the point itself."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a policy wrote in place of the number of a control."""

    field: ControlField
    words: str
    """On one line, not empty."""


class Grounding(Record):
    """How one described control was found, as the trace keeps it."""

    field: ControlField
    description: str
    """The policy's words, secrets masked."""
    answer: str = ""
    """The grounder's text, secrets masked."""
    point: tuple[float, float]
    """The point that it named, in CSS pixels of the view."""
    by: FoundBy
    distance: float = 0.0
    """CSS pixels from the point to the control's box."""
    role: str = ""
    """Role and name of the control; empty where there is none at the point."""
    name: str = ""

    @property
    def element(self) -> str:
        """The control in words; empty where there is none at the point."""
        return f'{self.role} "{self.name}"' if self.role else ""

    @property
    def line(self) -> str:
        """Description → point → control, on one line. It holds words of page and policy: it is data."""
        x, y = self.point
        found = self.element or "no control there"
        near = f" ({self.distance:.0f} px beside the point)" if self.distance else ""
        return f'"{self.description}" → {x:g},{y:g} → {" ".join(found.split())}{near}'

    def with_texts(self, change: Callable[[str], str]) -> Grounding:
        """The same with *change* applied to every text."""
        texts = {name: change(getattr(self, name)) for name in ("description", "answer", "role", "name")}
        return self.model_copy(update=texts)
