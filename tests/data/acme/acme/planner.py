"""`--planner acme`: the same single milestone for every task."""

from __future__ import annotations

from envs.core.tasks import Milestone
from planners import Plan, Situation
from planners.entry import PlannerEntry


class AcmePlanner:
    spec = "acme"

    async def plan(self, situation: Situation) -> Plan:
        return Plan((Milestone(id="press", text="A button is pressed."),))


ENTRY = PlannerEntry(lambda model, settings: AcmePlanner())
