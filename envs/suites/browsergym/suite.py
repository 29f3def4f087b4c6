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

    A registered id, with or without `browsergym/` in front; `browsergym:module:id` imports your module first.
    From an episode only the origins in `settings.allow` can be reached. The run's own browser stays
    unused: this suite needs one with a debugging port.
    """

    def __init__(self, chromium: Chromium, folder: Path, settings: SessionSettings | None = None, *, name: str) -> None:
        """Raises BadInput: BrowserGym is not installed, or does not know the environment."""
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
        """Each environment closes what it opened; nothing is left for the suite."""


def task_infos(name: str) -> tuple[TaskInfo, ...]:
    """Every environment that the name stands for. Raises BadInput: BrowserGym is not installed, or does not know it."""
    names = registered(environment_of(name))
    return tuple(TaskInfo(name=one, category=CATEGORY, has_checker=True, needs="BrowserGym") for one in names)
