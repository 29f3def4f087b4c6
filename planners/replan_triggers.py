"""Re-plan triggers: typed causes, detected in the recent steps without a model.

Order of precedence: `blocked`, `stale_element`, `milestone_lost`, `loop`, `stall`. Concrete obstacles come before lack
of progress. `parse_error` is detected before a step, by :meth:`ReplanDetector.unreadable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from pydantic import Field

from envs.core.actions import Status
from envs.core.record import Record
from envs.core.trace import Cause


class ReplanSettings(Record):
    """Thresholds of the triggers, in steps unless stated otherwise."""

    max_period: int = Field(default=4, ge=1)
    """Longest cycle of (action, page) that counts as a loop."""
    repeats: int = Field(default=3, ge=2)
    """Repetitions of one action on one unchanged page that make a loop."""
    cycle_repeats: int = Field(default=2, ge=2)
    """Repetitions of a cycle of two or more steps that make a loop."""
    same_page: int = Field(default=4, ge=2)
    """Steps in a row on an unchanged page that make a stall."""
    no_milestone: int = Field(default=10, ge=2)
    """Steps in a row without a new milestone and without anything new to read that make a stall; unused without a
    plan."""
    reading: int = Field(default=30, ge=2)
    """Steps in a row without a new milestone that make a stall even while new pages are read; unused without a plan."""
    stale: int = Field(default=2, ge=1)
    """Actions in a row on stale or ambiguous elements."""
    parse_errors: int = Field(default=2, ge=1)
    """Unparsable policy answers in a row."""
    blocked: int = Field(default=1, ge=1)
    """Refused actions in a row."""
    cooldown: int = Field(default=2, ge=0)
    """Steps after a new plan in which no trigger fires."""


@dataclass(frozen=True, slots=True)
class StepSummary:
    """The facts of one step that the detector uses."""

    step: int
    """1-based."""
    action_text: str
    """The action as printed, references included."""
    digest: str
    """Digest of the observation that the action was chosen on."""
    status: Status | None
    """Status of the result; None where it is unknown."""
    z: tuple[bool, ...] = ()
    """Milestones achieved when the action was chosen; empty without a plan."""
    lost: tuple[str, ...] = ()
    """Texts of achieved milestones that no longer hold, by their state checkers."""
    state: str = ""
    """Page state of that observation (:func:`envs.observer.page_state.page_state`); empty where it is unknown."""
    shown: str = ""
    """What the action showed apart from the page: the output of `find` or `expand`, or the part of the page that a
    picture shows after a scroll."""


class ReplanTrigger(NamedTuple):
    """A detected cause with its description for the planner."""

    cause: Cause
    detail: str


class ReplanDetector:
    """Detects re-plan triggers. It has no state: equal steps give equal results."""

    def __init__(self, settings: ReplanSettings | None = None) -> None:
        self.settings = settings or ReplanSettings()

    def check(self, steps: Sequence[StepSummary], planned_at: int = 0) -> ReplanTrigger | None:
        """Returns the first trigger that applies, or None.

        *steps* are the latest steps, oldest first; the last `window` are enough. *planned_at* is the number of the last
        step before the current plan (0 for the first plan): earlier steps do not count, nor do the first `cooldown`
        steps of the plan.
        """
        steps = steps[-self.window :]
        fresh = [step for step in steps if step.step > planned_at]
        if not fresh or (fresh[-1].step - planned_at <= self.settings.cooldown and planned_at > 0):
            return None
        for detect in (_blocked, _stale, _lost, _loop):
            if (trigger := detect(fresh, self.settings)) is not None:
                return trigger
        return _stall(fresh, _readings(steps), self.settings)

    def unreadable(self, answers: int) -> ReplanTrigger | None:
        """Returns the trigger `parse_error` when the number of unparsable *answers* in a row reaches its threshold."""
        if answers != self.settings.parse_errors:
            return None
        return ReplanTrigger("parse_error", f"{answers} answers in a row held no readable action")

    @property
    def window(self) -> int:
        """Number of latest steps that determine the result."""
        s = self.settings
        cycle = s.max_period * max(s.cycle_repeats, 1)
        return max(cycle, s.repeats, s.same_page + 1, s.no_milestone + 1, s.reading + 1, s.stale, s.blocked)


def loop_period(keys: Sequence[object], *, max_period: int, repeats: int, cycle_repeats: int) -> int | None:
    """Returns the shortest period of a cycle at the end of *keys*, or None.

    Period 1 must repeat *repeats* times, a longer one *cycle_repeats* times.
    """
    for period in range(1, max_period + 1):
        length = period * (repeats if period == 1 else cycle_repeats)
        tail = keys[-length:]
        if len(tail) == length and all(tail[i] == tail[i - period] for i in range(period, length)):
            return period
    return None


def _run(steps: Sequence[StepSummary], holds: Callable[[StepSummary], bool]) -> list[StepSummary]:
    """Returns the longest tail of *steps* for which *holds* is true, oldest first."""
    return list(takewhile(holds, reversed(steps)))[::-1]


def _blocked(steps: Sequence[StepSummary], settings: ReplanSettings) -> ReplanTrigger | None:
    run = _run(steps, lambda step: step.status is Status.BLOCKED)
    if len(run) < settings.blocked:
        return None
    return ReplanTrigger("blocked", f"step {run[-1].step}: {run[-1].action_text!r} was refused")


def _stale(steps: Sequence[StepSummary], settings: ReplanSettings) -> ReplanTrigger | None:
    run = _run(steps, lambda step: step.status in (Status.STALE, Status.AMBIGUOUS))
    if len(run) < settings.stale:
        return None
    last = run[-1]
    return ReplanTrigger(
        "stale_element",
        f"{len(run)} actions in a row named an element that is gone or ambiguous, last {last.action_text!r}",
    )


def _lost(steps: Sequence[StepSummary], settings: ReplanSettings) -> ReplanTrigger | None:
    last = steps[-1]
    if last.lost:
        return ReplanTrigger("milestone_lost", "no longer holds: " + "; ".join(repr(text) for text in last.lost))
    before = steps[-2].z if len(steps) > 1 else ()
    if len(before) == len(last.z) and any(old and not new for old, new in zip(before, last.z, strict=True)):
        numbers = [i + 1 for i, (old, new) in enumerate(zip(before, last.z, strict=True)) if old and not new]
        return ReplanTrigger("milestone_lost", f"no longer achieved: milestone {', '.join(map(str, numbers))}")
    return None


def _loop(steps: Sequence[StepSummary], settings: ReplanSettings) -> ReplanTrigger | None:
    period = loop_period(
        [(step.action_text, step.digest) for step in steps],
        max_period=settings.max_period,
        repeats=settings.repeats,
        cycle_repeats=settings.cycle_repeats,
    )
    if period is None:
        return None
    actions = " → ".join(repr(step.action_text) for step in steps[-period:])
    return ReplanTrigger("loop", f"the same {'action' if period == 1 else 'actions'} on the same page again: {actions}")


def _readings(steps: Sequence[StepSummary]) -> frozenset[int]:
    """Numbers of the steps that showed something new: they led to a page state that no earlier step was chosen on, or
    their output is new. Where the last step leads is not known yet."""
    found: set[int] = set()
    pages: set[str] = set()
    outputs: set[str] = set()
    for place, step in enumerate(steps):
        pages.add(_page_of(step))
        after = _page_of(steps[place + 1]) if place + 1 < len(steps) else None
        if (after is not None and after not in pages) or (step.shown and step.shown not in outputs):
            found.add(step.step)
        outputs.add(step.shown)
    return frozenset(found)


def _page_of(step: StepSummary) -> str:
    return step.state or step.digest


def _stall(steps: Sequence[StepSummary], readings: frozenset[int], settings: ReplanSettings) -> ReplanTrigger | None:
    """The page stays as it is, or no milestone is achieved. A step of *readings* is progress of its own, but an agent
    that only reads stalls, too, after `reading` steps."""
    last = steps[-1]
    same = _run(steps, lambda step: step.digest == last.digest and step.step not in readings)
    if len(same) > settings.same_page:
        return ReplanTrigger("stall", f"the page has not changed for {len(same) - 1} steps")
    flat = _run(steps, lambda step: sum(step.z) == sum(last.z) and len(step.z) == len(last.z))
    idle = _run(flat, lambda step: step.step not in readings)
    if last.z and not all(last.z) and (len(idle) > settings.no_milestone or len(flat) > settings.reading):
        return ReplanTrigger("stall", f"no milestone was achieved for {len(flat) - 1} steps")
    return None
