"""Makes the planner that a run's configuration names."""

from __future__ import annotations

from models.base import ChatModel
from planners.base import Planner
from planners.compact_planner import CompactPlanner
from planners.model_planner import ModelPlanner, PlannerSettings
from planners.none import NoPlanner
from planners.reference import ReferencePlanner


def make_planner(
    spec: str, model: ChatModel | None = None, settings: PlannerSettings | None = None, *, compact: bool = False
) -> Planner:
    """`none`, `reference`, or any model spec together with the *model* made from it.

    *settings* count only for a model. *compact* asks it as a small model that was trained to plan. Raises ValueError
    where a model is needed and none is given.
    """
    if spec == "none":
        return NoPlanner()
    if spec == "reference":
        return ReferencePlanner()
    if model is None:
        raise ValueError(f"planner {spec!r} needs a model; use `none`, `reference` or a model spec")
    return CompactPlanner(model, settings) if compact else ModelPlanner(model, settings)
