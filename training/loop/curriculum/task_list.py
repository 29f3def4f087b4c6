"""What the curriculum answers with: the next phase's tasks, and why each is there. Stored beside the phase."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from envs.core.record import Record
from envs.core.tasks import TaskRef


class Similar(Record):
    """It is like a task that failed."""

    kind: Literal["similar"] = "similar"
    failure: TaskRef
    """The first that named it."""
    score: float
    """Likeness of the two."""
    rank: int
    """Which of that failure's picks it is, from 1."""
    named_by: int
    """Failures that named it, this one included."""


class Rare(Record):
    """Its category fails and is hardly covered."""

    kind: Literal["rare"] = "rare"
    category: str
    failure: TaskRef
    """A failed task of the category; the one it is a variant of, unless it comes from the pool."""
    how: Literal["wording", "instance", "pool"]


class Explored(Record):
    """It was drawn evenly from the pool."""

    kind: Literal["explore"] = "explore"


class Retried(Record):
    """It failed, and is played again."""

    kind: Literal["retry"] = "retry"
    failure: str
    """Category of the failure; empty where it was not analysed."""


Reason = Annotated[Similar | Rare | Explored | Retried, Field(discriminator="kind")]


class Listed(Record):
    """One task of the next phase."""

    task: TaskRef
    instruction: str
    """As in :class:`training.loop.curriculum.Candidate`."""
    category: str
    reason: Reason


class Counts(Record):
    """Tasks by reason."""

    similar: int
    rare: int
    explore: int
    retry: int
    missing: int
    """Tasks fewer than were asked for: the pool is used up, or `max_new` is reached."""
    too_hard: int = 0
    """Tasks that a value below the band kept out; 0 without a band."""
    too_easy: int = 0
    """Those above it."""


class Selection(Record):
    """The next phase's tasks, each once, in the order in which they are played."""

    tasks: tuple[Listed, ...]
    counts: Counts
    failures: int
    """Different failed tasks that it was made from."""
    rare_categories: tuple[str, ...] = ()
    """The one that lacks most first."""

    @property
    def refs(self) -> tuple[TaskRef, ...]:
        return tuple(one.task for one in self.tasks)
