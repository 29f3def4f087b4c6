"""Environments: the browser, observations, actions, the allowlist proxy, tasks and the trace.

This package exports the typed records that all other packages use. The browser is in :mod:`envs.browser.chromium` and
:mod:`envs.browser.session`; task suites are in :mod:`envs.suites`. The package contains no models and no prompts.
Importing it loads none of its modules: each name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envs.core.actions import ACTION, Action, ActionResult, Reason, Status
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
    "Reason",
    "Score",
    "SessionSettings",
    "Status",
    "Suite",
    "TaskRef",
    "TaskSelection",
]

_MODULES = {
    "envs.core.actions": ("ACTION", "Action", "ActionResult", "Reason", "Status"),
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
