"""MiniWoB++ as a suite: every task page of the installed `miniwob` package."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Self

from envs.browser.chromium import Chromium
from envs.core.settings import SessionSettings, Viewport
from envs.core.tasks import TaskInfo
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.suites.miniwob.catalog import category
from envs.suites.miniwob.environment import MiniwobEnvironment
from envs.suites.miniwob.harness import HIDDEN
from envs.suites.miniwob.milestones import MILESTONES
from envs.suites.miniwob.pages import PageServer, html_root, task_names
from envs.suites.miniwob.solvers import SOLVERS

VIEWPORT = Viewport(width=500, height=500)
"""The task area is 160×210 CSS pixels; some tasks open lists and calendars below it."""


class MiniwobSuite:
    """Task names are the page names without `.html`; seeds are arguments of `Math.seedrandom`: any integer.

    One loopback page server serves all workers, which can access nothing else.
    *settings* are the run's; the suite sets viewport and hidden parts.
    Raises BadInput if the `miniwob` package is not installed.
    """

    name = "miniwob"

    def __init__(self, chromium: Chromium, folder: Path, settings: SessionSettings | None = None) -> None:
        root = html_root()
        self._chromium = chromium
        self._folder = folder
        self._settings = episode_settings(settings or SessionSettings())
        self._server = PageServer(root).start()
        self._proxies: list[AllowlistProxy] = []
        """One per environment, because approval and checks belong to a session."""
        self._numbers = count(1)

    def tasks(self) -> Sequence[TaskInfo]:
        return task_infos()

    async def environment(self) -> MiniwobEnvironment:
        folder = self._folder / f"miniwob-{next(self._numbers)}"
        proxy = await AllowlistProxy(Origins.parse([self._server.origin])).start()
        self._proxies.append(proxy)
        try:
            session = await self._chromium.session(self._settings, proxy, folder)
        except BaseException:
            await proxy.close()
            raise
        return MiniwobEnvironment(session, self._server)

    async def close(self) -> None:
        for proxy in self._proxies:
            await proxy.close()
        self._server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def task_infos() -> tuple[TaskInfo, ...]:
    """Every task of the installed package, by name; needs no browser. Raises BadInput without the package."""
    return tuple(_info(name) for name in task_names(html_root()))


def _info(name: str) -> TaskInfo:
    milestones = max((len(form.specs) for form in MILESTONES.get(name, ())), default=0)
    return TaskInfo(name=name, category=category(name), has_checker=True, milestones=milestones, oracle=name in SOLVERS)


def episode_settings(settings: SessionSettings) -> SessionSettings:
    """*settings* with the benchmark's viewport, and with its own elements hidden from the observation."""
    skip = ", ".join(filter(None, (settings.observe.skip, HIDDEN)))
    return settings.model_copy(
        update={"viewport": VIEWPORT, "observe": settings.observe.model_copy(update={"skip": skip})}
    )
