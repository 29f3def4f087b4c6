"""An action language over a table of forms. A language adds the syntax around names and values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, Literal

from envs.core.action_languages.base import Parsed, notes_in, without_thoughts
from envs.core.action_languages.descriptions import read_description, with_placeholders
from envs.core.action_languages.forms import CONTROLS, Form, FormTable, Slot, Value, read_value
from envs.core.action_languages.rationale import rationale_in
from envs.core.action_languages.several import following
from envs.core.actions import Action, UseTool

COMMENT_CHARS: Final = 400
"""Longest comment, or paragraph, before the first action of a constrained answer."""

TO_DO: Final = "To do: "
"""Comes before the steps that are still to do, in the rationales of small models."""

ELEMENT_LINE: Final = "# Element: "
"""Begins the line with the label of the control that the action is for [MiRA App. A.4, Fig. 16]."""

Offered = Sequence[tuple[Slot, str]]
"""Slots with the GBNF rules of their values."""


class Language(ABC):
    """A text format for actions. Stateless and safe: text is parsed, never evaluated."""

    name: Literal["program", "id"]
    forms: FormTable
    introduction: str
    """First line of the reference: what stands for the number of a control."""
    text_characters: str
    """GBNF rule of one character in a text value, escapes included."""
    key_characters: str
    """GBNF rule of a key that is one printable ASCII character, escapes included."""
    describes: bool = False
    """Controls are described in words instead of by number, see :mod:`envs.core.grounding`."""
    names_controls: bool = False
    """An answer can have an ELEMENT_LINE before its action."""

    @cached_property
    def reference(self) -> str:
        """A compact list of the actions and their arguments, for a prompt, without those of `pixels` and the call of a
        tool, which few runs have."""
        return "\n".join((self.introduction, *self.lines(lambda form: form.action is not UseTool)))

    def lines(self, listed: Callable[[Form], bool]) -> list[str]:
        """The lines of the reference with the forms that are *listed*, without those of `pixels`."""
        lines = ([form for form in line if listed(form)] for line in self.forms.lines(at_points=False))
        return [self._line(line) for line in lines if line]

    @cached_property
    def pixels(self) -> str:
        """The same for the actions at points of the view, which a prompt offers only with the boxes of the page."""
        return "\n".join(map(self._line, self.forms.lines(at_points=True)))

    def parse(self, text: str) -> Parsed:
        """Parses the first action of *text*. Raises ParseError and nothing else."""
        return self._first(without_thoughts(text))[0]

    def parse_all(self, text: str) -> tuple[Parsed, ...]:
        """Parses the first action of *text* and those that follow it, see :mod:`envs.core.action_languages.several`.
        Raises ParseError if one of them is malformed, and nothing else."""
        text = without_thoughts(text)
        first, end = self._first(text)
        return (first, *following(text, end, lambda place: self.begin(text, place), lambda at: self.read(text, at)))

    @abstractmethod
    def show(self, action: Action) -> str:
        """Formats *action* as one line that parses back to it, if its texts are storable and its numbers finite."""

    @abstractmethod
    def shape(self, form: Form) -> str:
        """An example of *form* with placeholders, for the reference and for error messages."""

    @abstractmethod
    def template(self, form: Form, shown: Sequence[tuple[Slot, str]]) -> str:
        """*form* with these texts for its slots, as they are: they are shown and not read."""

    @abstractmethod
    def label(self, form: Form) -> str:
        """The name of *form* as the reference lists it beside another one."""

    @abstractmethod
    def start(self, text: str) -> int:
        """The position of the first action in *text*. Raises ParseError."""

    @abstractmethod
    def begin(self, text: str, position: int) -> int | None:
        """The position of the action with which the line at *position* begins; None if it begins with none."""

    @abstractmethod
    def read(self, text: str, position: int) -> tuple[Parsed, int]:
        """Parses the action at *position*, and returns the position after it. Raises ParseError."""

    @abstractmethod
    def answer_rule(self, actions: str, *, named: bool = False, opening: str = "") -> str:
        """GBNF rule of an answer with the rule *actions*, after a rationale. *named*: *actions* may begin with an
        ELEMENT_LINE, which the rationale does not have. *opening*: text that the rationale begins with."""

    @abstractmethod
    def ending_rule(self, ending: str, last_steps: Iterable[str], *, named: bool = False, opening: str = "") -> str:
        """GBNF rule of an answer with the rule *ending*, after a rationale in which one of *last_steps* follows TO_DO.
        *named*, *opening*: as for `answer_rule`; the opening ends with TO_DO."""

    @abstractmethod
    def form_rule(self, form: Form, offered: Offered) -> str:
        """GBNF rule of *form* with the values of *offered*."""

    @abstractmethod
    def written(self, slot: Slot, value: Value) -> str:
        """*value* as `show` writes it, without the quotes or brackets around it."""

    def _first(self, text: str) -> tuple[Parsed, int]:
        start = self.start(text)
        parsed, end = self.read(text, start)
        return replace(parsed, notes=notes_in(text[:start]), rationale=rationale_in(text[:start])), end

    def value(self, slot: Slot, text: str) -> Value:
        """Reads the value of *slot*. Raises :class:`envs.core.action_languages.base.Fault`."""
        if self.describes and slot.kind in CONTROLS:
            return read_description(text, slot.name)
        return read_value(slot.kind, text, slot.name)

    def build(self, form: Form, values: Mapping[str, Value]) -> Parsed:
        """The action of *form* with *values* by the name of their field."""
        if not self.describes:
            return Parsed(form.build(values))
        numbers, described = with_placeholders(values)
        return Parsed(form.build(numbers), described=described)

    def _line(self, forms: Sequence[Form]) -> str:
        """A line of the reference: the first form, those of the same required slots by name, the others whole."""
        first = forms[0]
        alike = [form for form in forms[1:] if form.required == first.required]
        shapes = [self.shape(first), *(self.shape(form) for form in forms[1:] if form not in alike)]
        remarks = [f"also {', '.join(map(self.label, alike))}"] if alike else []
        remarks += [first.remark] if first.remark else []
        return "   ".join((", ".join(shapes), *(["; ".join(remarks)] if remarks else [])))
