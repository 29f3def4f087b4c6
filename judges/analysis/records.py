"""What the analyzer says of one failed episode."""

from __future__ import annotations

from typing import NamedTuple

from envs.core.record import Record
from envs.core.tasks import TaskRef
from envs.core.trace import EndedBy, Failure, Outcome


class Divergence(Record):
    """Where a failed episode left the way of the nearest reference for good (§4.3 of the MiRA paper)."""

    step: int
    """1-based step of the failed episode: its first significant difference."""
    reference: str
    """Episode id of the reference that it was compared with."""
    reference_step: int | None
    """The step that the reference took there; None where the reference had ended."""
    reason: str


class SameSteps(NamedTuple):
    """A step of the failed episode and the reference's step that means the same, by their numbers."""

    step: int
    reference_step: int


class Comparison(Record):
    """A failed episode beside the nearest reference success of the same task."""

    reference: str
    """Episode id of the reference."""
    divergence: Divergence | None = None
    """None: no significant difference was found."""
    followed: int = 0
    """Steps of the reference, its exit left out, that the failed episode did too."""
    first_known: bool = False
    """Some reference of the task does what the failed episode did first."""
    pairs: tuple[SameSteps, ...] = ()
    """Steps that mean the same, in order of the failed episode."""
    done_at: int | None = None
    """Step at which everything that the reference did was done and only its exit was left; None if that never was."""


class Analysis(Record):
    """One failed episode, explained."""

    run_id: str
    episode_id: str
    task: TaskRef
    attempt: int
    category: str
    """The site category of the task, e.g. `shop`."""
    policy: str
    outcome: Outcome
    ended_by: EndedBy
    steps: int
    summary: str
    """What was achieved, what was not, and the final check, from the checker's own words alone."""
    failure: Failure
    """Category, key step, reason, and the loop where there is one."""
    divergence: Divergence | None = None
    """None where there was no reference of the same task, or no significant difference."""
    nearest: str | None = None
    """Episode id of the reference that it was compared with; None without one."""
    pairs: tuple[SameSteps, ...] = ()
    """Steps that mean the same as one of that reference."""
    references: int = 0
    """References of the same task that there were to compare with."""
    asked: int = 0
    """Times a model had to say whether two actions mean the same."""
