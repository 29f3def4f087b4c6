"""Worlds: the browser, what is seen of a page, what is done on it, the boundary, tasks and the trace.

Promised from here: the typed records that every other room speaks. The browser itself is :mod:`envs.browser.chromium`
and :mod:`envs.browser.session`; suites are sub-packages such as :mod:`envs.suites.miniwob`. This room knows no models
and no prompts. Importing the room loads none of its modules: each name is looked up when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envs.core.actions import ACTION, Action, ActionResult, Status
    from envs.core.errors import BadInput, EnvError
    from envs.core.observation import Element, ElementKey, Observation
    from envs.core.settings import ObserveSettings, SessionSettings
    from envs.core.tasks import (
        Environment,
        EpisodeStart,
        Milestone,
        MilestoneCheck,
        Score,
        Suite,
        TaskRef,
        TaskSelection,
    )

__all__ = [
    "ACTION",
    "Action",
    "ActionResult",
    "BadInput",
    "Element",
    "ElementKey",
    "EnvError",
    "Environment",
    "EpisodeStart",
    "Milestone",
    "MilestoneCheck",
    "Observation",
    "ObserveSettings",
    "Score",
    "SessionSettings",
    "Status",
    "Suite",
    "TaskRef",
    "TaskSelection",
]

_MODULES = {
    "envs.core.actions": ("ACTION", "Action", "ActionResult", "Status"),
    "envs.core.errors": ("BadInput", "EnvError"),
    "envs.core.observation": ("Element", "ElementKey", "Observation"),
    "envs.core.settings": ("ObserveSettings", "SessionSettings"),
    "envs.core.tasks": (
        *("Environment", "EpisodeStart", "Milestone", "MilestoneCheck", "Score", "Suite", "TaskRef", "TaskSelection"),
    ),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
