"""Reference milestones as typed data: what each says, and the checker that decides it from the page's state.

A checker is a pure function of the goal (values parsed from the instruction) and one :class:`PageState`. Milestones
that hold before the first action are dropped from the episode: there is nothing to achieve.
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
    """What a checker saw."""

    achieved: bool
    evidence: str


Checker = Callable[[Goal, PageState], Verdict]


@dataclass(frozen=True, slots=True)
class MilestoneSpec:
    """One reference milestone of a task."""

    id: str
    text: str
    """A template: `{name}` is replaced by that value of the goal."""
    checker: Checker
    lasting: bool = False
    """True for an event (an e-mail was opened) that stays achieved after the page has moved on; False for a state."""


@dataclass(frozen=True, slots=True)
class TaskMilestones:
    """The milestones of a task, in order. *pattern* parses the instruction; its named groups are the goal."""

    pattern: str
    specs: tuple[MilestoneSpec, ...]

    def goal(self, instruction: str) -> Goal | None:
        """The values of this instruction; None where the pattern does not fit: the episode then has no milestones."""
        found = re.search(self.pattern, instruction)
        return None if found is None else {name: value or "" for name, value in found.groupdict().items()}


class Tracker:
    """The reference milestones of one episode, from its first state on."""

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
        """The checkers' word on *state* (None: the page is gone), in order. Lasting milestones stay once seen."""
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
    """One pass over the template: a value that looks like `{name}` is not filled again."""
    return re.sub(r"\{(\w+)\}", lambda found: goal[found[1]], template)
