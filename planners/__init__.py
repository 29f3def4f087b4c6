"""Planners: K milestones from an instruction and the first observation, and again on a re-plan trigger.

The public interface is the :class:`Planner` protocol; :func:`planners.registry.make_planner` creates one by name or
from a model. Planners use observations; they know neither the browser driver nor the graph.
"""

from planners.base import Plan, Planner, Situation

__all__ = ["Plan", "Planner", "Situation"]
