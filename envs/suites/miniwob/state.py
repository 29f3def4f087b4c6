"""A typed snapshot of a task page, read in one call, for milestone checkers.

It is bounded: at most `MAX_FIELDS` controls and `MAX_TEXT` characters of visible text, each value cut at `MAX_VALUE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.core.record import storable
from envs.observer.program import pristine

MAX_FIELDS = 200
MAX_ITEMS = 400
MAX_VALUE = 500
MAX_TEXT = 4000
FULL_REWARD = 0.999
"""Below 1, because some tasks add up thirds."""

LIMITS = (MAX_FIELDS, MAX_ITEMS, MAX_VALUE, MAX_TEXT)
_SNAPSHOT = Path(__file__).with_name("state.js").read_text(encoding="utf-8")
SNAPSHOT_JS = f"(options) => {{ 'use strict';\n{pristine()}\n{_SNAPSHOT}\nreturn snapshot(options);\n}}"
"""A function of the episode's id and `LIMITS`; returns null if the page shows another episode."""


@dataclass(frozen=True, slots=True)
class Field:
    """The present state of one form control."""

    type: str
    """The input's type, or `textarea` or `select`."""
    id: str
    label: str
    value: str
    checked: bool
    selected: tuple[str, ...]
    """Labels of the chosen options of a drop-down or list; otherwise empty."""
    shown: bool
    focused: bool


@dataclass(frozen=True, slots=True)
class PageState:
    """A snapshot of a task page. Its strings are page content: compared, never interpreted."""

    done: bool
    """True if the benchmark has ended the episode."""
    reward: float
    """-1 to 1; meaningful if `done`."""
    reason: str | None
    fields: tuple[Field, ...]
    open: tuple[str, ...]
    """Text of the visible nodes that are expanded or selected (tabs, sections, menus)."""
    items: tuple[str, ...]
    """Text of each visible node without child elements, and of menu items beside their icons, in document order,
    without the benchmark's own elements."""
    parts: tuple[str, ...]
    """Ids of the visible nodes, which identify the shown part of a multi-part page."""
    text: str
    """Visible text of the task area."""

    @staticmethod
    def parse(raw: list[Any]) -> PageState:
        """Converts the result of `SNAPSHOT_JS`."""
        done, reward, reason, fields, opened, items, parts, text = raw
        return PageState(
            done=bool(done),
            reward=float(reward or 0.0),
            reason=None if reason is None else storable(reason),
            fields=tuple(_field(row) for row in fields),
            open=tuple(storable(each) for each in opened),
            items=tuple(storable(each) for each in items),
            parts=tuple(storable(each) for each in parts),
            text=storable(text),
        )

    @property
    def won(self) -> bool:
        """True if the benchmark ended the episode with full reward."""
        return self.done and self.reward >= FULL_REWARD

    def values(self, *types: str) -> tuple[str, ...]:
        """Values of the fields of these types (by default all), in document order."""
        return tuple(field.value for field in self.fields if not types or field.type in types)

    def field(self, ident: str) -> Field | None:
        """The field with this DOM id, or None."""
        return next((field for field in self.fields if field.id == ident), None)

    def checked(self) -> frozenset[str]:
        """Labels of the checked boxes and radio buttons."""
        return frozenset(field.label for field in self.fields if field.checked)

    def chosen(self) -> frozenset[str]:
        """Labels of the chosen options of all drop-downs and lists."""
        return frozenset(option for field in self.fields for option in field.selected)


def _field(row: list[Any]) -> Field:
    kind, ident, label, value, checked, selected, shown, focused = row
    options = tuple(storable(option) for option in selected)
    return Field(kind, storable(ident), storable(label), storable(value), checked, options, shown, focused)
