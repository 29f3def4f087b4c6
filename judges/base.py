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
    """All actions, oldest first."""
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
class RatedMilestone:
    """A milestone of the last plan, as the AutoRater left it."""

    text: str
    achieved: bool
    quotes: tuple[str, ...] = ()
    """What proved it: words of a page or of the log, or a state checker's evidence."""
    after: int | None = None
    """Number of steps after which it was rated as achieved; None where that is not recorded."""


@dataclass(frozen=True, slots=True)
class SeenPage:
    """A page that the agent saw before the last one, or what one of its actions showed."""

    step: int
    """1-based number of the step that was chosen on it."""
    url: str
    title: str
    text: str
    output: bool = False
    """`text` is the output of `find` or `expand` on that page."""
    met: tuple[int, ...] = ()
    """0-based numbers of the milestones that were met on it."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Input of the outcome judge; :mod:`judges.ending` adds milestones and pages."""

    instruction: str
    history: tuple[PastAction, ...]
    """All actions, oldest first."""
    observation: Observation
    """The last page."""
    answer: str | None
    milestones: tuple[RatedMilestone, ...] = ()
    """The last plan; empty without one."""
    notes: tuple[str, ...] = ()
    """What the policy noted for itself, oldest first."""
    pages: tuple[SeenPage, ...] = ()
    """Earlier pages, oldest first."""
    pages_left_out: int = 0
    """Number of earlier pages that are not among `pages`."""


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
