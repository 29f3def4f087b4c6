"""BrowserGym environments as a suite named `browsergym:ENV`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from envs.browser.chromium import Chromium
from envs.core.settings import SessionSettings
from envs.core.tasks import TaskInfo
from envs.suites.browsergym.environment import CATEGORY, BrowserGymEnvironment
from envs.suites.browsergym.names import environment_of, module_of
from envs.suites.browsergym.process import registered


class BrowserGymSuite:
    """One BrowserGym environment (`browsergym:miniwob.click-test`) or all below a name (`browsergym:miniwob`).

    The name is a registered id, with or without the prefix `browsergym/`; `browsergym:module:id` first imports
    your module. An episode can access only the origins in `settings.allow`. The run's own browser is not used,
    because this suite needs one with a debugging port.
    """

    def __init__(self, chromium: Chromium, folder: Path, settings: SessionSettings | None = None, *, name: str) -> None:
        """Raises BadInput if BrowserGym is not installed or does not know the environment."""
        self.name = name
        self._infos = task_infos(name)
        self._folder = folder
        self._settings = settings or SessionSettings()
        self._numbers = count(1)

    def tasks(self) -> Sequence[TaskInfo]:
        return self._infos

    async def environment(self) -> BrowserGymEnvironment:
        folder = self._folder / f"browsergym-{next(self._numbers)}"
        return BrowserGymEnvironment(folder, self._settings, module_of(self.name))

    async def close(self) -> None:
        """Does nothing: each environment closes its own resources."""


def task_infos(name: str) -> tuple[TaskInfo, ...]:
    """The environments of the suite *name*. Raises BadInput if BrowserGym is not installed or does not know it."""
    ids = registered(environment_of(name))
    return tuple(TaskInfo(name=task, category=CATEGORY, has_checker=True, needs="BrowserGym") for task in ids)
