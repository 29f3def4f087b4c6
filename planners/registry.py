"""Creates the planner that a run's configuration names: an entry of the registry, or a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from envs.core.errors import BadInput
from models.base import ChatModel
from models.local.declarations import RoleStyle
from models.registry import Registry
from planners.base import Planner
from planners.compact_planner import CompactPlanner
from planners.entry import PlannerEntry
from planners.model_planner import ModelPlanner, PlannerSettings
from planners.short_planner import ShortPlanner

PLANNERS: Final = Registry(
    "mira.planners",
    PlannerEntry,
    {"none": "planners.none:ENTRY", "reference": "planners.reference:ENTRY"},
    error=BadInput,
    reserved=frozenset({"same"}),
)
_PLANNERS: Final[Mapping[RoleStyle, Callable[[ChatModel, PlannerSettings | None], Planner]]] = {
    "compact": CompactPlanner,
    "short": ShortPlanner,
    "full": ModelPlanner,
}


def make_planner(
    spec: str, model: ChatModel | None = None, settings: PlannerSettings | None = None, *, style: RoleStyle = "full"
) -> Planner:
    """Creates an entry of the registry, or a planner that uses *model*, which was created from the model spec *spec*.

    *settings* apply to added entries and models. *style*: the prompts that the model gets.
    Raises BadInput for an added entry that cannot be used, ValueError if a model is needed and is None.
    """
    name, _ = PLANNERS.split(spec)
    if name:
        return PLANNERS.load(name).make(model, settings or PlannerSettings())
    if model is None:
        raise ValueError(f"planner {spec!r} needs a model; use `none`, `reference` or a model spec")
    return _PLANNERS[style](model, settings)
