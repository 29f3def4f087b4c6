"""A small typed picture of a task page, read in one call: what milestone checkers judge.

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
"""Some tasks add up thirds."""

LIMITS = (MAX_FIELDS, MAX_ITEMS, MAX_VALUE, MAX_TEXT)
_LOOK = Path(__file__).with_name("state.js").read_text(encoding="utf-8")
SNAPSHOT_JS = f"(given) => {{ 'use strict';\n{pristine()}\n{_LOOK}\nreturn look(given);\n}}"
"""A function of the episode's mark and `LIMITS`; null where the page shows another episode."""


@dataclass(frozen=True, slots=True)
class Field:
    """One form control as it is now."""

    type: str
    """The input's type, or `textarea` or `select`."""
    id: str
    label: str
    value: str
    checked: bool
    selected: tuple[str, ...]
    """Labels of the chosen options; empty unless a drop-down or list."""
    shown: bool
    focused: bool


@dataclass(frozen=True, slots=True)
class PageState:
    """One look at a task page. Strings in it are page content: compared, never interpreted."""

    done: bool
    """True once the benchmark has ended the episode."""
    reward: float
    """-1 to 1; meaningful once `done`."""
    reason: str | None
    fields: tuple[Field, ...]
    open: tuple[str, ...]
    """Text of the visible nodes that are expanded or selected (tabs, sections, menus)."""
    items: tuple[str, ...]
    """Text of each visible node without child elements, and of menu items beside their icons, in document order; the
    benchmark's own furniture left out."""
    parts: tuple[str, ...]
    """Ids of the visible nodes: tells which part of a multi-part page is shown."""
    text: str
    """Visible text of the task area."""

    @staticmethod
    def parse(raw: list[Any]) -> PageState:
        """From what `SNAPSHOT_JS` returns."""
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
        """The benchmark ended the episode with full reward."""
        return self.done and self.reward >= FULL_REWARD

    def values(self, *types: str) -> tuple[str, ...]:
        """Values of the fields of these types (all, if none is named), in document order."""
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
