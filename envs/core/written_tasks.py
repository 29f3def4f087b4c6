"""Tasks whose instruction a model wrote: the environment of an instance with another instruction and no checker.

The instance says where the episode begins: the page, who is logged in, what the site holds. Nothing in it knows whether
the written task is done, so its checker and its milestones are left out, and the run needs an outcome judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from envs.core.actions import Action
from envs.core.tasks import Environment, EpisodeStart, MilestoneCheck, Score, TaskRef


class WrittenTaskEnvironment:
    """*environment* with a written task. Whatever is not defined here is the environment's own."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)

    async def reset(self, task: TaskRef) -> EpisodeStart:
        """Raises ResetFailed."""
        return _written(task, await self._environment.reset(task))

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        """Raises ResetFailed."""
        return _written(task, await self._environment.restore_state(task, folder, committed))

    async def score(self, answer: str | None) -> Score | None:
        return None

    async def check_milestones(self) -> tuple[MilestoneCheck, ...] | None:
        return None


def environment_of(task: TaskRef, environment: Environment) -> Environment:
    """*environment*, wrapped if *task* has a written instruction."""
    return cast(Environment, WrittenTaskEnvironment(environment)) if task.written else environment


def _written(task: TaskRef, start: EpisodeStart) -> EpisodeStart:
    return start.model_copy(update={"instruction": task.written, "milestones": ()})
