"""The baseline: no subgoals, so the gain of planning can be measured against it."""

from __future__ import annotations

from planners.base import Plan, Situation
from planners.entry import PlannerEntry


class NoPlanner:
    """Always the empty plan; the loop then works from the instruction alone."""

    spec = "none"

    async def plan(self, situation: Situation) -> Plan:
        return Plan(milestones=())


ENTRY = PlannerEntry(lambda model, settings: NoPlanner())
