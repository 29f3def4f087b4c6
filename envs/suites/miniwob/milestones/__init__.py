"""Reference milestones with state checkers for the named multi-element tasks."""

from __future__ import annotations

from envs.suites.miniwob.milestones.spec import MilestoneSpec, TaskMilestones, Tracker, Verdict
from envs.suites.miniwob.milestones.table import MILESTONES

__all__ = ["MILESTONES", "MilestoneSpec", "TaskMilestones", "Tracker", "Verdict"]
