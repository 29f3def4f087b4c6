"""The milestones that a task ships, as the plan."""

from __future__ import annotations

from envs.core.tasks import Milestone
from planners.base import Plan, Situation
from planners.entry import PlannerEntry


class ReferencePlanner:
    """The task's own milestones in the task's own order; the empty plan where it ships none.

    A re-plan gives the same plan again: its state checkers answer in the task's order, so an anchor that was
    achieved out of turn keeps its place instead of moving first. Anchors that the task does not know (from a plan
    made otherwise) come before the reference.
    """

    spec = "reference"

    async def plan(self, situation: Situation) -> Plan:
        known = {milestone.id for milestone in situation.reference}
        foreign: tuple[Milestone, ...] = tuple(m for m in situation.anchors if m.id not in known)
        return Plan(milestones=foreign + situation.reference)


ENTRY = PlannerEntry(lambda model, settings: ReferencePlanner())
