"""Records of failure analysis."""

from __future__ import annotations

from typing import NamedTuple

from envs.core.record import Record
from envs.core.tasks import TaskRef
from envs.core.trace import EndedBy, Failure, Outcome


class Divergence(Record):
    """Where a failed episode finally left the path of the nearest reference (§4.3 of the MiRA paper)."""

    step: int
    """1-based step of the failed episode: its first significant difference."""
    reference: str
    """Episode id of the nearest reference."""
    reference_step: int | None
    """The reference's step at that point; None if the reference had ended."""
    reason: str


class SameSteps(NamedTuple):
    """A step of the failed episode and the equivalent step of the reference, by number."""

    step: int
    reference_step: int


class Comparison(Record):
    """Compares a failed episode with the nearest reference success of the same task."""

    reference: str
    """Episode id of the reference."""
    divergence: Divergence | None = None
    """None without a significant difference."""
    followed: int = 0
    """Number of steps of the reference, without its Stop, that the failed episode also did."""
    first_known: bool = False
    """Whether any reference of the task has the failed episode's first move."""
    pairs: tuple[SameSteps, ...] = ()
    """Equivalent steps, in order of the failed episode."""
    done_at: int | None = None
    """Step from which only the reference's Stop was left; None if there is none."""


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
    """Achieved and open milestones and the final check, from the checker's evidence alone."""
    failure: Failure
    """Category, key step, reason, and the loop if there is one."""
    divergence: Divergence | None = None
    """None without a reference of the same task or without a significant difference."""
    nearest: str | None = None
    """Episode id of the nearest reference; None without one."""
    pairs: tuple[SameSteps, ...] = ()
    """Steps that are equivalent to steps of that reference."""
    references: int = 0
    """Number of references of the same task."""
    asked: int = 0
    """Number of pairs of actions that a model compared."""
