"""Reference milestones as typed data: a text, and a checker of the page's state.

A checker is a pure function of the goal (values parsed from the instruction) and one :class:`PageState`. Milestones
that are achieved before the first action are removed from the episode.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from envs.core.tasks import Milestone, MilestoneCheck
from envs.suites.miniwob.state import PageState

Goal = Mapping[str, str]
"""Named values parsed from the instruction."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a checker, with its evidence."""

    achieved: bool
    evidence: str


Checker = Callable[[Goal, PageState], Verdict]


@dataclass(frozen=True, slots=True)
class MilestoneSpec:
    """One reference milestone of a task."""

    id: str
    text: str
    """A template: `{name}` is replaced by the value of the goal."""
    checker: Checker
    lasting: bool = False
    """True for an event (an e-mail was opened), which stays achieved when the page changes; False for a state."""


@dataclass(frozen=True, slots=True)
class TaskMilestones:
    """The milestones of a task, in order. *pattern* parses the instruction; its named groups are the goal."""

    pattern: str
    specs: tuple[MilestoneSpec, ...]

    def goal(self, instruction: str) -> Goal | None:
        """The values of this instruction; None if the pattern does not match: the episode then has no milestones."""
        match = re.search(self.pattern, instruction)
        return None if match is None else {name: value or "" for name, value in match.groupdict().items()}


class Tracker:
    """Tracks the reference milestones of one episode."""

    def __init__(self, forms: Sequence[TaskMilestones], instruction: str, start: PageState) -> None:
        fitting = ((form.specs, form.goal(instruction)) for form in forms)
        specs, goal = next((pair for pair in fitting if pair[1] is not None), ((), None))
        self._goal: Goal = goal or {}
        self._specs = tuple(spec for spec in specs if not spec.checker(self._goal, start).achieved)
        self._seen: dict[str, str] = {}

    @property
    def milestones(self) -> tuple[Milestone, ...]:
        return tuple(Milestone(id=spec.id, text=_filled(spec.text, self._goal)) for spec in self._specs)

    def check(self, state: PageState | None) -> tuple[MilestoneCheck, ...]:
        """Checks all milestones on *state* (None: the page is gone). Lasting milestones stay achieved."""
        return tuple(self._check(spec, state) for spec in self._specs)

    def _check(self, spec: MilestoneSpec, state: PageState | None) -> MilestoneCheck:
        if spec.id in self._seen:
            return MilestoneCheck(achieved=True, evidence=self._seen[spec.id])
        if state is None:
            return MilestoneCheck(achieved=False, evidence="the task page is gone")
        verdict = spec.checker(self._goal, state)
        if verdict.achieved and spec.lasting:
            self._seen[spec.id] = f"earlier: {verdict.evidence}"
        return MilestoneCheck(achieved=verdict.achieved, evidence=verdict.evidence)


def _filled(template: str, goal: Goal) -> str:
    """Fills the template in one pass, so a value that looks like `{name}` is not filled again."""
    return re.sub(r"\{(\w+)\}", lambda match: goal[match[1]], template)
