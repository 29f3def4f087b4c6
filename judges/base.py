"""Protocols of judges. An answer that cannot be parsed raises an error; it never becomes a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from envs.core.observation import Observation
from envs.core.step_context import StepContext
from envs.core.tasks import MilestoneCheck
from envs.core.trace import Rating
from models.base import ChatReply


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(StepContext):
    """Input of the AutoRater at one step. Anchors are not rated again (MiRA paper, §5.2). It has no notes: what the
    policy says proves nothing."""

    previous: Observation | None = None
    """The page of the turn before; None at the first."""
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
    """What the AutoRater found on one page, with the model's replies; no replies where state checkers decided."""

    rating: Rating
    replies: tuple[ChatReply, ...] = ()
    postponed: bool = False
    """The page was not rated, because nothing was done yet or only the focus moved; the next one is."""


class AutoRater(Protocol):
    """Verifies after each step which milestones are achieved."""

    spec: str
    """Name or model spec, for traces."""

    async def rate(self, progress: Progress) -> Rated:
        """Returns z_t with evidence for every flip. Raises :class:`models.base.ModelError`."""
        ...


@dataclass(frozen=True, slots=True)
class Proof:
    """Why the AutoRater rated a milestone as achieved; empty for a milestone that is open."""

    quotes: tuple[str, ...] = ()
    """Words of a page or of the log, or a state checker's evidence."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending(StepContext):
    """Input of the outcome judge; :mod:`judges.ending` adds proofs and pages."""

    answer: str | None
    """None: the agent gave no answer."""
    proofs: tuple[Proof, ...] = ()
    """Of each milestone; empty before they are added."""
    pages: tuple[SeenPage, ...] = ()
    """Earlier pages, oldest first."""
    pages_left_out: int = 0
    """Number of earlier pages that are not among `pages`."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the outcome judge decided about an episode that has ended."""

    success: bool
    reason: str
    """Why, in the judge's words."""
    reply: ChatReply
    score: float | None = None
    """Probability of success, in [0, 1], where the judge gives one."""


class OutcomeJudge(Protocol):
    """Decides at the end of an episode whether it succeeded. The score of a task's checker takes precedence."""

    spec: str
    """Name or model spec, for traces."""

    async def judge(self, ending: Ending) -> Verdict:
        """Success or failure (MiRA paper, Fig. 17). Raises :class:`models.base.ModelError`; an answer that cannot be
        parsed is never a failure of the episode."""
        ...
