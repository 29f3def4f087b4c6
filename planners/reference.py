"""Planner `reference`: the milestones that a task ships."""

from __future__ import annotations

from envs.core.tasks import Milestone
from planners.base import Plan, Situation
from planners.entry import PlannerEntry


class ReferencePlanner:
    """Returns the task's reference milestones in their order; the empty plan where the task ships none.

    A re-plan returns the same plan: the state checkers answer in the task's order, so an anchor that was achieved out
    of order keeps its place. Anchors that are no reference milestones (of another plan) come first.
    """

    spec = "reference"

    async def plan(self, situation: Situation) -> Plan:
        known = {milestone.id for milestone in situation.reference}
        foreign: tuple[Milestone, ...] = tuple(m for m in situation.anchors if m.id not in known)
        return Plan(milestones=foreign + situation.reference)


ENTRY = PlannerEntry(lambda model, settings: ReferencePlanner())
