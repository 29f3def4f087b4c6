"""What judges are. A judge that cannot be parsed raises; it never turns into a score."""

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
    """What the AutoRater may know at one step."""

    instruction: str
    milestones: tuple[Milestone, ...]
    z: tuple[bool, ...]
    """Milestones verified so far; a True is an anchor and is not examined again (MiRA paper, §5.2)."""
    observation: Observation
    previous: Observation | None = None
    history: tuple[PastAction, ...] = ()
    """The latest actions, oldest first."""
    step: int | None = None
    """Actions taken so far; None where only `history` tells."""
    checks: tuple[MilestoneCheck, ...] | None = None
    """State checkers' answers, where the task ships reference milestones and they are the plan."""


@dataclass(frozen=True, slots=True)
class Rated:
    rating: Rating
    replies: tuple[ChatReply, ...] = ()


class AutoRater(Protocol):
    spec: str

    async def rate(self, progress: Progress) -> Rated:
        """z_t with the evidence for every flip. Raises :class:`models.base.ModelError`."""
        ...


@dataclass(frozen=True, slots=True)
class Ending:
    """What the outcome judge may know."""

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
        read is never a failure of the episode."""
        ...
