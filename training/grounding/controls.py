"""Controls of a page, instructions that name one of them, and the check that an instruction names exactly one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from envs.core.record import Record
from models.prompting.prompt_text import quoted


class Asks(StrEnum):
    """How an instruction names a control."""

    NAME = "name"
    FUNCTION = "function"
    RELATION = "relation"


class Container(Record):
    """A part of the page that holds controls."""

    kind: str
    """row, card, dialog, field, item, toolbar or navigation bar."""
    label: str = ""
    """The text that names it on the page; empty for a part that needs none."""

    @property
    def words(self) -> str:
        """The container in an instruction, with its preposition."""
        match self.kind:
            case "row":
                return f"in the row of {quoted(self.label)}"
            case "field":
                return f"next to the field {quoted(self.label)}"
            case "dialog":
                return f"of the dialog {quoted(self.label)}"
            case _:
                return f"in the {self.kind}" + (f" {quoted(self.label)}" if self.label else "")


class Control(Record):
    """One control of a page, whether it can be seen or not."""

    id: str
    """Unique on its page."""
    role: str
    """The word for it in instructions: button, link, tab, text field …"""
    name: str
    """Its accessible name."""
    icon: bool = False
    """It shows a picture in place of its name."""
    concept: str = ""
    """What it does, as a name of :mod:`training.grounding.vocabulary`; empty if that is not known."""
    function: str = ""
    """What it does, in words; empty if that is not known."""
    containers: tuple[Container, ...] = ()
    """The parts of the page that it is in, the smallest first."""

    @property
    def kind(self) -> str:
        """The word for it in instructions: `icon` where it shows no text."""
        return "icon" if self.icon else self.role


class Instruction(Record):
    """Names a control. Fields that are empty do not count."""

    asks: Asks
    name: str = ""
    concept: str = ""
    container: Container | None = None
    words: str
    """The control in words, which complete "Where is …?"."""

    def matches(self, control: Control) -> bool:
        """Whether *control* is what the instruction says. Case, space and roles do not count: a person cannot always
        see which role a control has."""
        if self.name and _plain(control.name) != _plain(self.name):
            return False
        if self.concept and control.concept != self.concept:
            return False
        return self.container is None or any(_same(self.container, held) for held in control.containers)


def _same(one: Container, other: Container) -> bool:
    return one.kind == other.kind and _plain(one.label) == _plain(other.label)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def by_name(control: Control) -> Instruction:
    """The control by its name: `the "Save" button`."""
    return Instruction(asks=Asks.NAME, name=control.name, words=f"the {quoted(control.name)} {control.kind}")


def by_function(control: Control) -> Instruction:
    """The control by what it does: `the button to store the changes`. It needs a function."""
    words = f"the {control.kind} to {control.function}"
    return Instruction(asks=Asks.FUNCTION, concept=control.concept, words=words)


def by_relation(control: Control, container: Container) -> Instruction:
    """The control by its name and the part of the page that it is in: `the "Delete" icon in the row of "Ann"`."""
    words = f"the {quoted(control.name)} {control.kind} {container.words}"
    return Instruction(asks=Asks.RELATION, name=control.name, container=container, words=words)


def instructions(control: Control) -> tuple[Instruction, ...]:
    """All instructions that can be made for *control*, ambiguous ones included."""
    made: list[Instruction] = []
    if _plain(control.name):
        made.append(by_name(control))
        made += [by_relation(control, container) for container in control.containers]
    if control.function:
        made.append(by_function(control))
    return tuple(made)


def count_matches(instruction: Instruction, controls: Iterable[Control]) -> int:
    """How many of *controls* the instruction names."""
    return sum(map(instruction.matches, controls))


def is_unambiguous(instruction: Instruction, target: Control, controls: Sequence[Control]) -> bool:
    """Whether *target* is the only one of *controls*, all of the page, that the instruction names."""
    return instruction.matches(target) and count_matches(instruction, controls) == 1
