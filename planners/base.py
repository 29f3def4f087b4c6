"""What a planner is: instruction and first look in, K milestones out; again when something typed went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from envs.core.observation import Observation
from envs.core.past_actions import PastAction
from envs.core.tasks import Milestone
from envs.core.trace import Cause
from models.base import ChatReply


@dataclass(frozen=True, slots=True)
class Situation:
    """What a planner may know when it plans."""

    instruction: str
    category: str
    observation: Observation
    reference: tuple[Milestone, ...] = ()
    """Milestones that the task ships; only the `reference` planner may read them."""
    history: tuple[PastAction, ...] = ()
    """The latest actions, oldest first."""
    anchors: tuple[Milestone, ...] = ()
    """Milestones already achieved: a new plan keeps them first and unchanged (MiRA paper, §5.2)."""
    open: tuple[Milestone, ...] = ()
    """Milestones of the current plan not yet achieved."""
    cause: Cause = "initial"
    detail: str = ""
    """What exactly went wrong, for a re-plan."""


@dataclass(frozen=True, slots=True)
class Plan:
    milestones: tuple[Milestone, ...]
    """In order; empty means that the agent works without subgoals."""
    reply: ChatReply | None = None
    """The model's answer, where a model made the plan."""


class Planner(Protocol):
    spec: str

    async def plan(self, situation: Situation) -> Plan:
        """Raises :class:`models.base.ModelError`. Achieved anchors come first, unchanged."""
        ...
