"""Restores a killed episode by repeating its committed actions, for environments that are rebuilt from a seed."""

from __future__ import annotations

from collections.abc import Sequence

from envs.core.actions import Action, Status
from envs.core.errors import ResetFailed
from envs.core.tasks import Environment, EpisodeStart, TaskRef


async def replay_actions(environment: Environment, task: TaskRef, committed: Sequence[Action]) -> EpisodeStart:
    """Resets the task and executes *committed*, each action after an observation as in the original run.

    Raises ResetFailed if an action crashes the browser or times out.
    """
    start = await environment.reset(task)
    for number, action in enumerate(committed, 1):
        await environment.observe()
        result = await environment.execute(action)
        if result.status in (Status.CRASHED, Status.TIMEOUT):
            raise ResetFailed(f"{task.id}: replaying action {number} ended as {result.status}: {result.message}")
    return start
