"""The planner protocol: instruction and observation in, K milestones out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from envs.core.step_context import StepContext
from envs.core.tasks import Milestone
from envs.core.trace import Cause
from models.base import ChatReply


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation(StepContext):
    """The input of a planner. A new plan keeps the `anchors` first and unchanged (MiRA paper, §5.2)."""

    category: str
    reference: tuple[Milestone, ...] = ()
    """Milestones that the task ships; only the `reference` planner may read them."""
    cause: Cause = "initial"
    detail: str = ""
    """Description of the re-plan trigger."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The output of a planner."""

    milestones: tuple[Milestone, ...]
    """In order; empty means that the agent works without subgoals."""
    reply: ChatReply | None = None
    """The model's reply; None for planners without a model."""


class Planner(Protocol):
    """Makes plans."""

    spec: str

    async def plan(self, situation: Situation) -> Plan:
        """Returns a plan with the anchors first, unchanged. Raises :class:`models.base.ModelError`."""
        ...
