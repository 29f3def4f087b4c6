"""A short reference of an action language for small models: common actions, and those that the page in view permits.

Values are shown as `<number of a textbox>`: in angle brackets, which no language parses, because small models copy
examples of a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from envs.core import actions as act
from envs.core.action_languages.base import ParseError
from envs.core.action_languages.choices import PageChoices
from envs.core.action_languages.form_language import Language
from envs.core.action_languages.forms import Form, Kind, Slot
from envs.core.actions import Action
from envs.core.record import Record

INTRODUCTION: Final = "<number> is the number in brackets before a control of the page."
VALUES: Final[Mapping[Kind, str]] = {
    Kind.CONTROL: "<number>",
    Kind.FIELD: "<number of a textbox>",
    Kind.LIST: "<number of a control with options>",
    Kind.FILE_FIELD: "<number of a file field>",
    Kind.TEXT: "<text>",
    Kind.OPTION: "<one of its options>",
    Kind.FILE: "<name of a file>",
    Kind.GROUP: "<name of a group>",
    Kind.URL: "<address>",
    Kind.KEYS: "<key>",
    Kind.TAB: "<number of a tab>",
    Kind.TOOL: "<name of a tool>",
    Kind.DIALOG: "<accept or dismiss>",
    Kind.DIRECTION: "<up or down>",
    Kind.FLAG: "0",
}
"""What stands for a value, by its kind."""

_COPIED: Final = frozenset(text for text in VALUES.values() if text.startswith("<"))

_COMMON: Final[Mapping[type[Record], str]] = {
    act.Click: "a button, link, tab, checkbox, radio or other control; not to fill in text",
    act.Type: "replaces the text of a textbox",
    act.Select: "",
    act.Press: "such as Enter, Escape or Tab",
    act.Scroll: "",
    act.Drag: "",
    act.Back: "",
    act.Goto: "",
    act.Find: "shows the lines of the page with this text",
    act.Stop: "",
}
"""Actions that are always listed, with a remark."""
_LEFT_OUT: Final = frozenset({"Middle Click", "middle_click", "Press Enter", "Scroll Left", "Scroll Right", "append"})
"""Rare forms of them."""
_SITUATIONS: Final[Mapping[type[Record], Callable[[PageChoices], bool]]] = {
    act.Expand: lambda choices: bool(choices.groups),
    act.Upload: lambda choices: bool(choices.files) and bool(choices.file_fields),
    act.FocusTab: lambda choices: bool(choices.tabs),
    act.CloseTab: lambda choices: bool(choices.tabs),
    act.AnswerDialog: lambda choices: choices.dialog,
    act.UseTool: lambda choices: bool(choices.tools),
}
"""Actions that are listed where a page permits them."""


def short_reference(language: Language) -> str:
    """The common actions, one a line; equal on every page."""
    return "\n".join((INTRODUCTION, *(_line(language, forms, _COMMON[kind]) for kind, forms in _common(language))))


def possible_now(language: Language, choices: PageChoices) -> tuple[str, ...]:
    """Shapes of the less common actions that the page with *choices* permits."""
    forms = [form for form in language.forms.forms if form.action in _SITUATIONS]
    return tuple(short_shape(language, form) for form in forms if _SITUATIONS[form.action](choices))


def short_shape(language: Language, form: Form) -> str:
    """*form* with what stands for its values. It parses to no action unless it has no values."""
    slots = [slot for slot in form.slots if not slot.optional or slot.always or slot.kind is Kind.TEXT]
    return language.template(form, [(slot, _shown(slot)) for slot in slots])


def shape_of(language: Language, name: str) -> str:
    """The short shape of the form called *name*; that of a click where there is none."""
    form = next((form for form in language.forms.forms if form.name == name), language.forms.forms[0])
    return short_shape(language, form)


def refuse_placeholders(actions: Iterable[Action]) -> None:
    """Raises ParseError where a value of an action is one of :data:`VALUES`, copied from the reference in quotes."""
    for action in actions:
        if any(isinstance(value, str) and value in _COPIED for _, value in action):
            raise ParseError("a value was copied from the reference of the actions")


def _shown(slot: Slot) -> str:
    return VALUES.get(slot.kind, f"<{slot.name}>")


def _common(language: Language) -> Iterator[tuple[type[Record], list[Form]]]:
    for kind in _COMMON:
        yield kind, [form for form in language.forms.forms if form.action is kind]


def _line(language: Language, forms: list[Form], remark: str) -> str:
    first, *others = [form for form in forms if form.name not in _LEFT_OUT]
    alike = [form for form in others if form.required == first.required]
    other = [form for form in others if form not in alike]
    shapes = ", ".join(short_shape(language, form) for form in (first, *other))
    remarks = [f"also {', '.join(map(language.label, alike))}"] if alike else []
    remarks += [remark] if remark else []
    return "   ".join((shapes, *(["; ".join(remarks)] if remarks else [])))
