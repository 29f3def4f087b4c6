"""WebArena and its relatives as suites: `webarena-lite`, `webarena`, `webarena-verified`, `webarena-verified-hard`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

from envs.browser.chromium import Chromium
from envs.core.errors import BadInput
from envs.core.settings import SessionSettings
from envs.core.tasks import TaskInfo
from envs.suites.webarena.accounts import Accounts
from envs.suites.webarena.environment import SuiteContext, WebArenaEnvironment
from envs.suites.webarena.evaluators import FuzzyJudge, no_judge
from envs.suites.webarena.files import SuiteName, load_tasks
from envs.suites.webarena.sites import VARIABLES, Sites, category
from envs.suites.webarena.task import Task

WAIT_S = 3.0


class WebArenaSuite:
    """A suite of WebArena tasks. A task's name is its id. Environment variables configure sites and accounts.

    An episode can access only the configured sites and the rules of `settings.allow`. Checks by meaning
    (`fuzzy_match`, 40 of Lite's 165 tasks) use *judge*; without one they are broken, never failed.
    """

    def __init__(
        self,
        chromium: Chromium,
        folder: Path,
        settings: SessionSettings | None = None,
        *,
        name: SuiteName = "webarena-lite",
        judge: FuzzyJudge = no_judge,
        strict_original: bool = False,
        tasks: Sequence[Task] | None = None,
        sites: Sites | None = None,
        accounts: Accounts | None = None,
        wait_s: float = WAIT_S,
    ) -> None:
        """*tasks* replaces those in the cache. *strict_original*: score by the benchmark's own rules.

        Raises BadInput: no tasks, no sites, invalid variables, or invalid rules in `settings.allow`.
        """
        self.name = name
        sites = sites or Sites.from_environment()
        if not sites.urls:
            raise BadInput(f"{name} needs your copies of its sites: set {', '.join(VARIABLES.values())}")
        tasks = load_tasks(name) if tasks is None else tasks
        settings = settings or SessionSettings()
        self._chromium = chromium
        self._folder = folder
        self._numbers = count(1)
        self._context = SuiteContext(
            tasks={task.name: task for task in tasks},
            sites=sites,
            origins=sites.origins(settings.allow),
            accounts=accounts or Accounts.from_environment(),
            judge=judge,
            strict_original=strict_original,
            settings=settings,
            wait_s=wait_s,
        )

    def tasks(self) -> Sequence[TaskInfo]:
        return tuple(map(task_info, self._context.tasks.values()))

    async def environment(self) -> WebArenaEnvironment:
        return WebArenaEnvironment(self._chromium, self._context, self._folder / f"{self.name}-{next(self._numbers)}")

    async def close(self) -> None:
        """Does nothing: each environment closes its own resources."""


def task_infos(name: SuiteName) -> tuple[TaskInfo, ...]:
    """Every task of the suite; needs no browser and no sites. Raises BadInput if the data were not downloaded."""
    return tuple(map(task_info, load_tasks(name)))


def task_info(task: Task) -> TaskInfo:
    return TaskInfo(name=task.name, category=category(task), has_checker=True, needs=_needs(task))


def _needs(task: Task) -> str:
    """The variables with the addresses of its sites."""
    return ", ".join(dict.fromkeys(VARIABLES[site] for site in task.sites))
