"""Brings a killed episode back by doing again what was committed: for worlds that are rebuilt from a seed."""

from __future__ import annotations

from collections.abc import Sequence

from envs.core.actions import Action, Status
from envs.core.errors import ResetFailed
from envs.core.tasks import Environment, EpisodeStart, TaskRef


async def redo(environment: Environment, task: TaskRef, committed: Sequence[Action]) -> EpisodeStart:
    """Starts the same seed again and executes *committed*, each after an observation as at first.

    Raises ResetFailed where an action crashes the browser or takes too long.
    """
    start = await environment.reset(task)
    for number, action in enumerate(committed, 1):
        await environment.observe()
        result = await environment.execute(action)
        if result.status in (Status.CRASHED, Status.TIMEOUT):
            raise ResetFailed(f"{task.id}: replaying action {number} ended as {result.status}: {result.message}")
    return start
