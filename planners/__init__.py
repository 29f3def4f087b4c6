"""Planners: K milestones from an instruction and a first look, and again when something typed went wrong.

Promised from here: the :class:`Planner` protocol; :func:`planners.registry.make_planner` makes one by name or from a
model. Planners see observations; they know neither the browser driver nor the graph.
"""

from planners.base import Plan, Planner, Situation

__all__ = ["Plan", "Planner", "Situation"]
