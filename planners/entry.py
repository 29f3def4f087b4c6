"""What a planner registers: a function that makes it. Installed packages use the entry-point group `mira.planners`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from models.base import ChatModel
from planners.base import Planner
from planners.model_planner import PlannerSettings


@dataclass(frozen=True, slots=True)
class PlannerEntry:
    """A planner that a run names: `--planner NAME`, or `--planner NAME+MODEL` with the model that it may use."""

    make: Callable[[ChatModel | None, PlannerSettings], Planner]
    """The model is None unless the run names one."""
