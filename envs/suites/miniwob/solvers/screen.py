"""Gives solvers access to an observation: only what a policy also receives, and the past actions.

A solver has no more information than a policy, so its actions can be learned from the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from envs.core.actions import Action, Click, Select, Type
from envs.core.observation import Element, ElementKey, Observation
from envs.observer.page_lines import without_cues


@dataclass(frozen=True, slots=True)
class Past:
    """One action of this episode, with its target element."""

    action: Action
    target: ElementKey | None
    """The key of the element at `action.ref`, as observed when the action was chosen; None without an element."""


Solver = Callable[["Screen"], Action]
"""Returns the next action of the solution. Raises Unsolvable for an unknown page."""


class Unsolvable(Exception):
    """The solver has no action for this page. The demonstration is dropped and counted."""


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

    def parse(self, pattern: str) -> tuple[str, ...]:
        """The groups of *pattern* in the instruction. Raises Unsolvable if it does not match."""
        match = re.search(pattern, self.instruction)
        if match is None:
            raise Unsolvable(f"instruction {self.instruction!r} does not match {pattern!r}")
        return tuple(group or "" for group in match.groups())

    def all(self, *roles: str, name: str | None = None) -> list[Element]:
        """Shown controls with one of these *roles* (default: any) and exactly this *name* (default: any)."""
        return [
            element
            for element in self.elements
            if (not roles or element.key.role in roles) and (name is None or element.key.name == name)
        ]

    def find(self, *roles: str, name: str | None = None, at: int = 0) -> Element:
        """The control at position *at* of `all`. Raises Unsolvable if there is none."""
        controls = self.all(*roles, name=name)
        if not -len(controls) <= at < len(controls):
            raise Unsolvable(f"no {'/'.join(roles) or 'control'} {name!r} number {at} on the page")
        return controls[at]

    def has(self, *roles: str, name: str | None = None) -> bool:
        return bool(self.all(*roles, name=name))

    def did(self, kind: str, name: str | None = None) -> int:
        """The number of actions of *kind* in this episode, on a control of this *name* (default: any)."""
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
    """Types into the first field that does not contain its text yet; None if all do."""
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
    for line in without_cues(observation.text).splitlines():
        end = 0
        for match in _CONTROL.finditer(line):
            element = observation.element(int(match[1]))
            if element is None:
                continue
            _append_text(flow, line[end : match.start()])
            flow.append(element)
            end = match.end()
        _append_text(flow, line[end:])
    return flow


def _append_text(flow: list[str | Element], text: str) -> None:
    clean = text.strip().strip("|").strip()
    if clean:
        flow.append(clean)
