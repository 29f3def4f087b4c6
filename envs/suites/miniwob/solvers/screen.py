"""What a solver sees, arranged for reading: only the policy's own observation and its own past actions.

A solver knows nothing that a policy is not told, so what it does can be learned from the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from envs.core.actions import Action, Click, Select, Type
from envs.core.observation import Element, ElementKey, Observation


@dataclass(frozen=True, slots=True)
class Past:
    """One action of this episode, with the element that it named."""

    action: Action
    target: ElementKey | None
    """The key of the element at `action.ref`, as observed when the action was chosen; None if it named none."""


Solver = Callable[["Screen"], Action]
"""Returns the next action of the solution. Raises Unsolvable when the page is not one that it knows."""


class Unsolvable(Exception):
    """The solver does not know what to do on this page: the demonstration is dropped and counted."""


@dataclass(frozen=True)
class Screen:
    """The instruction, the current observation and the past actions."""

    instruction: str
    observation: Observation
    past: tuple[Past, ...] = ()

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The controls that the observation's text shows, in order."""
        return tuple(element for element in self.observation.elements if element.shown)

    @cached_property
    def flow(self) -> tuple[str | Element, ...]:
        """Page text and controls in document order: a text line as a string, a control as its element."""
        return tuple(_flow(self.observation))

    def wanted(self, pattern: str) -> tuple[str, ...]:
        """The groups of *pattern* in the instruction; Unsolvable if it does not match."""
        found = re.search(pattern, self.instruction)
        if found is None:
            raise Unsolvable(f"instruction {self.instruction!r} does not match {pattern!r}")
        return tuple(group or "" for group in found.groups())

    def all(self, *roles: str, name: str | None = None) -> list[Element]:
        """Shown controls with one of these roles (any, if none is given) and exactly this name, if one is given."""
        return [
            element
            for element in self.elements
            if (not roles or element.key.role in roles) and (name is None or element.key.name == name)
        ]

    def one(self, *roles: str, name: str | None = None, at: int = 0) -> Element:
        """The control at position *at* among those that `all` finds."""
        found = self.all(*roles, name=name)
        if not -len(found) <= at < len(found):
            raise Unsolvable(f"no {'/'.join(roles) or 'control'} {name!r} number {at} on the page")
        return found[at]

    def has(self, *roles: str, name: str | None = None) -> bool:
        return bool(self.all(*roles, name=name))

    def did(self, kind: str, name: str | None = None) -> int:
        """How often an action of *kind* was done in this episode, on a control of this name if one is given."""
        return sum(
            past.action.kind == kind and (name is None or (past.target is not None and past.target.name == name))
            for past in self.past
        )

    def text(self) -> str:
        """The page text without controls, lines joined by newlines."""
        return "\n".join(piece for piece in self.flow if isinstance(piece, str))


def click(element: Element) -> Click:
    return Click(ref=element.ref)


def fill(element: Element, text: str) -> Type:
    return Type(ref=element.ref, text=text)


def choose(element: Element, option: str) -> Select:
    return Select(ref=element.ref, option=option)


def fill_all(pairs: Sequence[tuple[Element, str]]) -> Action | None:
    """Types into the first field that does not hold its text yet; None when all do."""
    for element, text in pairs:
        if (element.value or "") != text:
            return fill(element, text)
    return None


_QUOTED = r'"(?:[^"\\]|\\.)*"'
_STATES = "checked|unchecked-mixed|disabled|expanded|collapsed|selected|focused|readonly|required|password"
_CONTROL = re.compile(
    rf"(?<!\\)\[(\d+)\] [\w-]+(?: {_QUOTED})?(?: = {_QUOTED})?(?: (?:{_STATES}))*"
    rf"(?: options:(?: {_QUOTED})*(?: … \d+ more)?)?"
)
"""One control in a line of the observation, see the grammar in :mod:`envs.core.observation`."""


def _flow(observation: Observation) -> list[str | Element]:
    flow: list[str | Element] = []
    for line in observation.text.splitlines():
        end = 0
        for found in _CONTROL.finditer(line):
            element = observation.element(int(found[1]))
            if element is None:
                continue
            _append_text(flow, line[end : found.start()])
            flow.append(element)
            end = found.end()
        _append_text(flow, line[end:])
    return flow


def _append_text(flow: list[str | Element], text: str) -> None:
    clean = text.strip().strip("|").strip()
    if clean:
        flow.append(clean)
