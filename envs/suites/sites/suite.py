"""The sites as a suite: real web applications on loopback, a private copy for every worker."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any, Self

from envs.browser.chromium import Chromium
from envs.core.settings import SessionSettings
from envs.core.tasks import TaskInfo, TaskRef
from envs.suites.sites.catalog import template, templates
from envs.suites.sites.environment import SitesEnvironment
from envs.suites.sites.golden import build_golden
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.splits import EVALUATION_SEEDS, POOL, split_of
from envs.suites.sites.templates import Instance, Params, Template, World, draw_candidates, instance


class Drawer:
    """Makes instances from golden states, which it builds where they are missing."""

    def __init__(self) -> None:
        self._drawn: dict[str, Sequence[Params]] = {}
        self._lock = asyncio.Lock()

    async def instance(self, task: TaskRef) -> Instance[Any]:
        """Raises BadInput for an unknown template, ResetFailed where a site cannot be built."""
        found = template(task.name)
        return instance(found, await self.candidates(found), task.seed)

    async def candidates(self, of: Template[Any]) -> Sequence[Any]:
        """Every distinct task of a template."""
        async with self._lock:
            if of.name not in self._drawn:
                golden: dict[SiteName, Path] = {name: await build_golden(name) for name in of.sites}
                self._drawn[of.name] = await asyncio.to_thread(draw_candidates, of, World(golden))
        return self._drawn[of.name]


class SitesSuite:
    """Task names are template names, seeds are instance numbers from 0.

    Copies live in a temporary folder of their own and end with the suite.
    """

    name = "sites"

    def __init__(self, chromium: Chromium, folder: Path, settings: SessionSettings | None = None) -> None:
        self._chromium = chromium
        self._folder = folder
        self._settings = settings or SessionSettings()
        self._copies = Path(tempfile.mkdtemp(prefix="mira-sites-"))
        self._numbers = count(1)
        self.drawer = Drawer()

    def tasks(self) -> Sequence[TaskInfo]:
        return task_infos()

    async def environment(self) -> SitesEnvironment:
        number = next(self._numbers)
        return SitesEnvironment(
            self._chromium,
            self._settings,
            self.drawer,
            copies=self._copies / str(number),
            kept=self._folder / f"sites-{number}",
        )

    async def close(self) -> None:
        """Environments close their own copies; what is left of their folders goes here."""
        await asyncio.to_thread(shutil.rmtree, self._copies, ignore_errors=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def task_infos() -> tuple[TaskInfo, ...]:
    """Every template; needs neither the applications nor a browser."""
    return tuple(
        TaskInfo(
            name=one.name,
            category=one.category,
            has_checker=True,
            milestones=4,
            oracle=True,
            needs="extra sites",
            kind=one.kind,
            difficulty=one.difficulty,
            split=split_of(one.name),
            sample=one.wordings[0],
        )
        for one in templates().values()
    )


async def pool(drawer: Drawer, size: int = POOL) -> tuple[TaskRef, ...]:
    """The curriculum's pool: *size* distinct tasks of the training templates, the same ones each time.

    Round after round takes one task of every template that has any left; the first `EVALUATION_SEEDS` of each are
    kept for evaluation. Fewer where the templates do not offer as many.
    """
    names = [name for name in templates() if split_of(name) == "train"]
    offered = {name: len(await drawer.candidates(template(name))) for name in names}
    deepest = max(offered.values(), default=0)
    refs = (
        TaskRef(suite="sites", name=name, seed=seed)
        for seed in range(EVALUATION_SEEDS, deepest)
        for name in names
        if seed < offered[name]
    )
    return tuple(islice(refs, size))
