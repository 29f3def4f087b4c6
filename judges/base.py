"""Protocols of judges. An answer that cannot be parsed raises an error; it never becomes a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from envs.core.observation import Observation
from envs.core.past_actions import PastAction
from envs.core.tasks import Milestone, MilestoneCheck
from envs.core.trace import Rating
from models.base import ChatReply


@dataclass(frozen=True, slots=True)
class Progress:
    """Input of the AutoRater at one step."""

    instruction: str
    milestones: tuple[Milestone, ...]
    z: tuple[bool, ...]
    """Milestones verified so far. A True is an anchor and is not rated again (MiRA paper, §5.2)."""
    observation: Observation
    previous: Observation | None = None
    history: tuple[PastAction, ...] = ()
    """The latest actions, oldest first."""
    step: int | None = None
    """Actions taken so far; None means the length of `history`."""
    checks: tuple[MilestoneCheck, ...] | None = None
    """Results of the state checkers; None unless the plan is the task's reference milestones."""
    unrated: bool = False
    """The page before was not rated: it may have achieved a milestone, whatever changed since."""
    final: bool = False
    """The episode has ended: what is not rated now is never rated."""


@dataclass(frozen=True, slots=True)
class Rated:
    rating: Rating
    replies: tuple[ChatReply, ...] = ()
    postponed: bool = False
    """The page was not rated, because nothing was done yet or only the focus moved; the next one is."""


class AutoRater(Protocol):
    spec: str

    async def rate(self, progress: Progress) -> Rated:
        """Returns z_t with evidence for every flip. Raises :class:`models.base.ModelError`."""
        ...


@dataclass(frozen=True, slots=True)
class Ending:
    """Input of the outcome judge."""

    instruction: str
    history: tuple[PastAction, ...]
    observation: Observation
    answer: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    success: bool
    reason: str
    reply: ChatReply


class OutcomeJudge(Protocol):
    spec: str

    async def judge(self, ending: Ending) -> Verdict:
        """Success or failure (MiRA paper, Fig. 17). Raises :class:`models.base.ModelError`; an answer that cannot be
        parsed is never a failure of the episode."""
        ...
