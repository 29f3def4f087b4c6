"""The sites suite: real web applications on loopback, with private copies for each worker."""

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
from envs.suites.sites.templates import GoldenStates, Instance, Params, Template, draw_candidates, instance


class InstanceSampler:
    """Samples task instances from golden states. It builds missing golden states."""

    def __init__(self) -> None:
        self._candidates: dict[str, Sequence[Params]] = {}
        self._lock = asyncio.Lock()

    async def instance(self, task: TaskRef) -> Instance[Any]:
        """The instance of *task*. Raises BadInput for an unknown template, ResetFailed if a site cannot be built."""
        of = template(task.name)
        return instance(of, await self.candidates(of), task.seed)

    async def candidates(self, of: Template[Any]) -> Sequence[Any]:
        """The parameters of all distinct tasks of a template."""
        async with self._lock:
            if of.name not in self._candidates:
                golden: dict[SiteName, Path] = {name: await build_golden(name) for name in of.sites}
                self._candidates[of.name] = await asyncio.to_thread(draw_candidates, of, GoldenStates(golden))
        return self._candidates[of.name]


class SitesSuite:
    """The suite `sites`. Task names are template names; seeds are instance numbers from 0.

    Copies are in a temporary folder and end with the suite.
    """

    name = "sites"

    def __init__(self, chromium: Chromium, folder: Path, settings: SessionSettings | None = None) -> None:
        self._chromium = chromium
        self._folder = folder
        self._settings = settings or SessionSettings()
        self._copies = Path(tempfile.mkdtemp(prefix="mira-sites-"))
        self._numbers = count(1)
        self.sampler = InstanceSampler()

    def tasks(self) -> Sequence[TaskInfo]:
        return task_infos()

    async def environment(self) -> SitesEnvironment:
        number = next(self._numbers)
        return SitesEnvironment(
            self._chromium,
            self._settings,
            self.sampler,
            copies=self._copies / str(number),
            kept=self._folder / f"sites-{number}",
        )

    async def close(self) -> None:
        """Removes the folder of the copies. Environments end their copies themselves."""
        await asyncio.to_thread(shutil.rmtree, self._copies, ignore_errors=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def task_infos() -> tuple[TaskInfo, ...]:
    """All templates as task infos. Needs neither the applications nor a browser."""
    return tuple(
        TaskInfo(
            name=info.name,
            category=info.category,
            has_checker=True,
            milestones=4,
            oracle=True,
            needs="extra sites",
            kind=info.kind,
            difficulty=info.difficulty,
            split=split_of(info.name),
            sample=info.wordings[0],
        )
        for info in templates().values()
    )


async def pool(sampler: InstanceSampler, size: int = POOL) -> tuple[TaskRef, ...]:
    """The curriculum's pool: *size* distinct tasks of the training templates. Deterministic.

    Each round takes one task of every template that has tasks left. The first `EVALUATION_SEEDS` of each template are
    reserved for evaluation. The pool is smaller if the templates offer fewer tasks.
    """
    names = [name for name in templates() if split_of(name) == "train"]
    counts = {name: len(await sampler.candidates(template(name))) for name in names}
    refs = (
        TaskRef(suite="sites", name=name, seed=seed)
        for seed in range(EVALUATION_SEEDS, max(counts.values(), default=0))
        for name in names
        if seed < counts[name]
    )
    return tuple(islice(refs, size))
