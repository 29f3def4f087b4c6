"""Creates the planner that a run's configuration names."""

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
    """Creates the planner `none`, `reference`, or one that uses *model*, for a model spec.

    *settings* apply to a model only. *compact* uses the prompt of small models that were trained to plan. Raises
    ValueError where *spec* needs a model and *model* is None.
    """
    if spec == "none":
        return NoPlanner()
    if spec == "reference":
        return ReferencePlanner()
    if model is None:
        raise ValueError(f"planner {spec!r} needs a model; use `none`, `reference` or a model spec")
    return CompactPlanner(model, settings) if compact else ModelPlanner(model, settings)
