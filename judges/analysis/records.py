"""What the analyzer says of one failed episode."""

from __future__ import annotations

from envs.record import Record
from envs.tasks import TaskRef
from envs.trace import EndedBy, Failure, Outcome


class Divergence(Record):
    """Where a failed episode left the way of the nearest reference for good (§4.3 of the MiRA paper)."""

    step: int
    """1-based step of the failed episode: its first significant difference."""
    reference: str
    """Episode id of the reference that it was compared with."""
    reference_step: int | None
    """The step that the reference took there; None where the reference had ended."""
    reason: str


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
    references: int = 0
    """References of the same task that there were to compare with."""
    asked: int = 0
    """Times a model had to say whether two actions mean the same."""
