"""Worlds: the browser, what is seen of a page, what is done on it, the boundary, tasks and the trace.

Promised from here: the typed records that every other room speaks. The browser itself is :mod:`envs.chromium` and
:mod:`envs.session`; suites are sub-packages such as :mod:`envs.miniwob`. This room knows no models and no prompts.
"""

from envs.actions import ACTION, Action, ActionResult, Status
from envs.errors import BadInput, EnvError
from envs.observation import Element, ElementKey, Observation
from envs.settings import ObserveSettings, SessionSettings
from envs.tasks import Environment, EpisodeStart, Milestone, MilestoneCheck, Score, Suite, TaskRef, TaskSelection

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
