"""The forms of an action language: one table gives its parser, its printer, its reference and its grammar.

A :class:`Form` is one way to write an action: its name, the slots that are filled in, and the fields that the name
fixes ("Right Click" fixes `button`). Each language has a table of forms and the syntax around names and values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, Final

from envs.core.action_languages.base import (
    read_answer,
    read_button,
    read_count,
    read_direction,
    read_flag,
    read_number,
    read_ref,
)
from envs.core.actions import ACTION, Action
from envs.core.record import Record

MOST_INDEX: Final = 999_999_999


class Kind(Enum):
    """What a slot holds: how it is read, and which values a page allows."""

    CONTROL = auto()
    """The number of a control."""
    FIELD = auto()
    """The number of a control that takes text."""
    LIST = auto()
    """The number of a drop-down."""
    FILE_FIELD = auto()
    """The number of a control that takes a file."""
    TEXT = auto()
    OPTION = auto()
    """An option of the drop-down in the same form."""
    FILE = auto()
    GROUP = auto()
    URL = auto()
    KEYS = auto()
    ROW = auto()
    TAB = auto()
    TOOL = auto()
    """The name of a tool of the run."""
    COUNT = auto()
    BUTTON = auto()
    DIRECTION = auto()
    DIALOG = auto()
    """`accept` or `dismiss`."""
    FLAG = auto()
    PIXELS = auto()


CONTROLS: Final = frozenset({Kind.CONTROL, Kind.FIELD, Kind.LIST, Kind.FILE_FIELD})
NUMERIC: Final = frozenset({Kind.ROW, Kind.COUNT, Kind.PIXELS})

Value = int | float | str | bool


def read_value(kind: Kind, text: str, name: str) -> Value:
    """Reads a slot's value. Raises :class:`Fault`, which names the slot as *name*."""
    if kind in CONTROLS:
        return read_ref(text, name)
    match kind:
        case Kind.ROW:
            return read_count(text, name, 1, MOST_INDEX)
        case Kind.TAB:
            return read_count(text, name, 0, MOST_INDEX)
        case Kind.COUNT:
            return read_count(text, name, 1, 3)
        case Kind.BUTTON:
            return read_button(text)
        case Kind.DIRECTION:
            return read_direction(text)
        case Kind.DIALOG:
            return read_answer(text)
        case Kind.FLAG:
            return read_flag(text, name)
        case Kind.PIXELS:
            return read_number(text, name)
        case _:
            return text


@dataclass(frozen=True, slots=True)
class Slot:
    """A value that is filled in."""

    field: str
    """The field of the action."""
    kind: Kind
    name: str
    """Its name in messages, and in languages that name their arguments."""
    shape: str
    """Its placeholder in the reference. It is no valid value, because small models copy it."""
    optional: bool = False
    """May be left out; the action's field then has its default."""
    always: bool = False
    """The printer writes it even where it has its default."""
    alias: str = ""
    """A second accepted name."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write an action."""

    name: str
    action: type[Record]
    slots: tuple[Slot, ...] = ()
    fixed: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """Fields of the action that the name implies. An optional slot of the same field overrides one."""
    aliases: tuple[str, ...] = ()
    """Other accepted names, which the reference does not list."""
    remark: str = ""
    """An explanation in the reference, after the shape."""
    beside: bool = False
    """The reference lists it in the line of the form before it."""

    @property
    def required(self) -> tuple[Slot, ...]:
        return tuple(slot for slot in self.slots if not slot.optional)

    @property
    def written(self) -> tuple[Slot, ...]:
        """The slots that the printer always writes, and the reference shows."""
        return tuple(slot for slot in self.slots if slot.always or not slot.optional)

    @property
    def at_point(self) -> bool:
        """Whether it names a point of the view."""
        return any(slot.kind is Kind.PIXELS for slot in self.slots)

    def build(self, values: Mapping[str, Value]) -> Action:
        """The action with *values* by the name of their field."""
        return ACTION.validate_python({"kind": self.action.model_fields["kind"].default, **self.fixed, **values})

    def described(self, placeholder: str) -> Form:
        """The form with *placeholder*, for a description in words, in place of the number of a control."""
        shapes = {slot.shape for slot in self.slots if slot.kind in CONTROLS}
        slots = (replace(slot, shape=placeholder) if slot.kind in CONTROLS else slot for slot in self.slots)
        remark = self.remark
        for shape in shapes:
            remark = remark.replace(f'"{shape}"', f'"{placeholder}"').replace(f"[{shape}]", f"[{placeholder}]")
        return replace(self, slots=tuple(slots), remark=remark)

    def writes(self, action: Action) -> bool:
        """Whether this form can express *action* exactly."""
        if type(action) is not self.action:
            return False
        slots = {slot.field: slot for slot in self.slots}
        return all(
            value == self.fixed[name]
            if name in self.fixed
            else (name in slots and (value is not None or slots[name].optional)) or value == _default(self.action, name)
            for name, value in action
            if name != "kind"
        )

    def filled(self, action: Action) -> list[Any]:
        """The value of each slot; None for one that need not be written."""
        return [getattr(action, slot.field) if self._is_written(slot, action) else None for slot in self.slots]

    def _is_written(self, slot: Slot, action: Action) -> bool:
        if slot.field in self.fixed:
            return False
        changed = getattr(action, slot.field) != _default(self.action, slot.field)
        return changed or slot.always or not slot.optional


def _default(action: type[Record], name: str) -> Any:
    return action.model_fields[name].default


class FormTable:
    """The forms of one language, in the order of its reference."""

    def __init__(self, forms: Sequence[Form]) -> None:
        self.forms: Final = tuple(forms)
        self._by_name = {name.lower(): form for form in forms for name in (form.name, *form.aliases)}
        # The printer prefers the name that says most.
        self._most_specific = sorted(forms, key=lambda form: -len(form.fixed))

    def described(self, placeholder: str) -> FormTable:
        """The forms with *placeholder*, for a description in words, in place of the number of a control; without
        actions at points, which a description names as well."""
        return FormTable([form.described(placeholder) for form in self.forms if not form.at_point])

    def find(self, name: str) -> Form | None:
        """The form called *name*, in lower case."""
        return self._by_name.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def form_of(self, action: Action) -> Form:
        """The form that writes *action*."""
        return next(form for form in self._most_specific if form.writes(action))

    def lines(self, *, at_points: bool) -> list[list[Form]]:
        """The forms of each line of the reference, either of actions at points of the view or of all others."""
        lines: list[list[Form]] = []
        for form in self.forms:
            if form.at_point is not at_points:
                continue
            if form.beside:
                lines[-1].append(form)
            else:
                lines.append([form])
        return lines
