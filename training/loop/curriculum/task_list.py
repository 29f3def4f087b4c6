"""The curriculum's result: the next phase's tasks with the reason for each. It is stored beside the phase."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from envs.core.record import Record
from envs.core.tasks import TaskRef
from training.loop.curriculum.settings import ValueBand


class Similar(Record):
    """The task is similar to a failed one."""

    kind: Literal["similar"] = "similar"
    failure: TaskRef
    """The first failed task that nominated it."""
    score: float
    """Similarity score of the two."""
    rank: int
    """Rank among that failure's nominations, from 1."""
    named_by: int
    """Number of failures that nominated it, including this one."""


class Rare(Record):
    """The task's category has failures and is hardly covered by similar tasks."""

    kind: Literal["rare"] = "rare"
    category: str
    failure: TaskRef
    """A failed task of the category; of a variant, the task that it was made from."""
    how: Literal["wording", "instance", "written", "pool"]


class Explored(Record):
    """The task was drawn uniformly from the pool."""

    kind: Literal["explore"] = "explore"


class Retried(Record):
    """The task failed and is played again."""

    kind: Literal["retry"] = "retry"
    failure: str
    """Category of the failure; empty without an analysis."""


Reason = Annotated[Similar | Rare | Explored | Retried, Field(discriminator="kind")]


class Listed(Record):
    """One task of the next phase."""

    task: TaskRef
    instruction: str
    """As in :class:`training.loop.curriculum.Candidate`."""
    category: str
    reason: Reason


class Counts(Record):
    """Number of tasks by reason."""

    similar: int
    rare: int
    explore: int
    retry: int
    missing: int
    """Requested tasks minus listed ones: the pool is used up, or `max_new` is reached."""
    too_hard: int = 0
    """Tasks whose value is below the band; 0 without a band."""
    too_easy: int = 0
    """Tasks whose value is above the band."""

    def why_missing(self, pool: int, band: ValueBand | None) -> str:
        """Why tasks are missing, for a message: a *pool* of so many tasks is used up, `max_new` is reached, or the
        values of tasks are outside *band*."""
        reasons = f"the pool of {pool} is used up (pool.size), or curriculum.max_new is reached"
        if band is None or not self.too_hard + self.too_easy:
            return reasons
        return (
            f"curriculum.value_band from {band.low:g} to {band.high:g} leaves out {self.too_hard} tasks as too hard and"
            f" {self.too_easy} as too easy, {reasons}"
        )


class Selection(Record):
    """The next phase's tasks without duplicates, in the order in which they are played."""

    tasks: tuple[Listed, ...]
    counts: Counts
    failures: int
    """Number of distinct failed tasks that the selection is based on."""
    rare_categories: tuple[str, ...] = ()
    """Rare categories, the one with the largest gap first."""

    @property
    def refs(self) -> tuple[TaskRef, ...]:
        return tuple(listed.task for listed in self.tasks)
