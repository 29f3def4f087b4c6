"""When to re-plan: typed causes, found in the recent steps without asking a model.

Order of precedence: `blocked`, `stale_element`, `milestone_lost`, `loop`, `stall`. What names a concrete obstacle comes
before what only shows that nothing moves. `parse_error` comes before a step, not after one, and is asked for apart.
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
    """How much trouble is enough. Counts are steps unless said otherwise."""

    max_period: int = Field(default=4, ge=1)
    """Longest cycle of (action, page) that counts as a loop."""
    repeats: int = Field(default=3, ge=2)
    """Times one action on one unchanged page is seen before it is a loop."""
    cycle_repeats: int = Field(default=2, ge=2)
    """Times a cycle of two or more steps is seen before it is a loop."""
    same_page: int = Field(default=4, ge=2)
    """Steps in a row after which an unchanged page is a stall."""
    no_milestone: int = Field(default=10, ge=2)
    """Steps in a row without a new milestone after which the plan is a stall; not used where there is no plan."""
    stale: int = Field(default=2, ge=1)
    """Stale or ambiguous elements in a row."""
    parse_errors: int = Field(default=2, ge=1)
    """Unreadable policy answers in a row."""
    blocked: int = Field(default=1, ge=1)
    """Refused actions in a row."""
    cooldown: int = Field(default=2, ge=0)
    """Steps that a new plan is given before any cause counts again."""


@dataclass(frozen=True, slots=True)
class StepSummary:
    """What the watch needs to know of one step."""

    step: int
    """1-based."""
    action_text: str
    """The action as printed, references included."""
    digest: str
    """Digest of the observation that the action was chosen on."""
    status: Status | None
    """How the action ended; None where none was sent."""
    z: tuple[bool, ...] = ()
    """Milestones achieved when the action was chosen; empty without a plan."""
    lost: tuple[str, ...] = ()
    """Texts of milestones that were achieved and, by their state checker, no longer hold."""


class ReplanTrigger(NamedTuple):
    """Why to plan again, and the sentence that tells the planner what exactly happened."""

    cause: Cause
    detail: str


class ReplanDetector:
    """Pure: the same ticks give the same answer, nothing is remembered between calls."""

    def __init__(self, settings: ReplanSettings | None = None) -> None:
        self.settings = settings or ReplanSettings()

    def check(self, ticks: Sequence[StepSummary], planned_at: int = 0) -> ReplanTrigger | None:
        """The first cause that holds now, or None.

        *ticks* are the latest steps, oldest first (a tail is enough: `window` of them). *planned_at* is the number of
        the last step before the current plan came into force (0 for the first plan): earlier steps do not count
        against it, and for `cooldown` steps nothing does.
        """
        fresh = [tick for tick in ticks if tick.step > planned_at]
        if not fresh or (fresh[-1].step - planned_at <= self.settings.cooldown and planned_at > 0):
            return None
        for detect in (_blocked, _stale, _lost, _loop, _stall):
            if (trouble := detect(fresh, self.settings)) is not None:
                return trouble
        return None

    def unreadable(self, answers: int) -> ReplanTrigger | None:
        """The cause where the policy has just given the last of *answers* in a row without a readable action; once for
        each such row."""
        if answers != self.settings.parse_errors:
            return None
        return ReplanTrigger("parse_error", f"{answers} answers in a row held no readable action")

    @property
    def window(self) -> int:
        """How many of the latest ticks decide: keeping more changes nothing."""
        s = self.settings
        cycle = s.max_period * max(s.cycle_repeats, 1)
        return max(cycle, s.repeats, s.same_page + 1, s.no_milestone + 1, s.stale, s.blocked)


def loop_period(keys: Sequence[object], *, max_period: int, repeats: int, cycle_repeats: int) -> int | None:
    """The shortest period of the cycle that *keys* end in, or None.

    Period 1 must be seen *repeats* times, a longer one *cycle_repeats* times.
    """
    for period in range(1, max_period + 1):
        length = period * (repeats if period == 1 else cycle_repeats)
        tail = keys[-length:]
        if len(tail) == length and all(tail[i] == tail[i - period] for i in range(period, length)):
            return period
    return None


def _run(ticks: Sequence[StepSummary], holds: Callable[[StepSummary], bool]) -> list[StepSummary]:
    """The longest tail of *ticks* for which *holds*, oldest first."""
    return list(takewhile(holds, reversed(ticks)))[::-1]


def _blocked(ticks: Sequence[StepSummary], settings: ReplanSettings) -> ReplanTrigger | None:
    run = _run(ticks, lambda tick: tick.status is Status.BLOCKED)
    if len(run) < settings.blocked:
        return None
    return ReplanTrigger("blocked", f"step {run[-1].step}: {run[-1].action_text!r} was refused")


def _stale(ticks: Sequence[StepSummary], settings: ReplanSettings) -> ReplanTrigger | None:
    run = _run(ticks, lambda tick: tick.status in (Status.STALE, Status.AMBIGUOUS))
    if len(run) < settings.stale:
        return None
    last = run[-1]
    return ReplanTrigger(
        "stale_element",
        f"{len(run)} actions in a row named an element that is gone or ambiguous, last {last.action_text!r}",
    )


def _lost(ticks: Sequence[StepSummary], settings: ReplanSettings) -> ReplanTrigger | None:
    last = ticks[-1]
    if last.lost:
        return ReplanTrigger("milestone_lost", "no longer holds: " + "; ".join(repr(text) for text in last.lost))
    before = ticks[-2].z if len(ticks) > 1 else ()
    if len(before) == len(last.z) and any(old and not new for old, new in zip(before, last.z, strict=True)):
        numbers = [i + 1 for i, (old, new) in enumerate(zip(before, last.z, strict=True)) if old and not new]
        return ReplanTrigger("milestone_lost", f"no longer achieved: milestone {', '.join(map(str, numbers))}")
    return None


def _loop(ticks: Sequence[StepSummary], settings: ReplanSettings) -> ReplanTrigger | None:
    period = loop_period(
        [(tick.action_text, tick.digest) for tick in ticks],
        max_period=settings.max_period,
        repeats=settings.repeats,
        cycle_repeats=settings.cycle_repeats,
    )
    if period is None:
        return None
    actions = " → ".join(repr(tick.action_text) for tick in ticks[-period:])
    return ReplanTrigger("loop", f"the same {'action' if period == 1 else 'actions'} on the same page again: {actions}")


def _stall(ticks: Sequence[StepSummary], settings: ReplanSettings) -> ReplanTrigger | None:
    last = ticks[-1]
    same = _run(ticks, lambda tick: tick.digest == last.digest)
    if len(same) > settings.same_page:
        return ReplanTrigger("stall", f"the page has not changed for {len(same) - 1} steps")
    flat = _run(ticks, lambda tick: sum(tick.z) == sum(last.z) and len(tick.z) == len(last.z))
    if last.z and not all(last.z) and len(flat) > settings.no_milestone:
        return ReplanTrigger("stall", f"no milestone was achieved for {len(flat) - 1} steps")
    return None
