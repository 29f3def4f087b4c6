"""Assigns reference milestones to tasks."""

from __future__ import annotations

from envs.suites.miniwob.milestones.apps import APP_TASKS
from envs.suites.miniwob.milestones.forms import FORM_TASKS
from envs.suites.miniwob.milestones.navigation import NAVIGATION_TASKS
from envs.suites.miniwob.milestones.spec import TaskMilestones

MILESTONES: dict[str, tuple[TaskMilestones, ...]] = {
    **{name: (task,) for name, task in FORM_TASKS.items()},
    **{name: (task,) for name, task in NAVIGATION_TASKS.items()},
    **APP_TASKS,
}
"""By task name. If a task has several forms of instruction, the first matching pattern is used."""
