"""Planner `none`: the baseline without milestones."""

from __future__ import annotations

from planners.base import Plan, Situation
from planners.entry import PlannerEntry


class NoPlanner:
    """Returns the empty plan; the policy then works from the instruction alone."""

    spec = "none"

    async def plan(self, situation: Situation) -> Plan:
        return Plan(milestones=())


ENTRY = PlannerEntry(lambda model, settings: NoPlanner())
