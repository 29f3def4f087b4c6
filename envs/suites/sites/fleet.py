"""The copies that one environment holds. They start when a task first needs their site and reset before every
episode."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from envs.core.errors import ResetFailed
from envs.suites.sites.copies import SiteCopy, borrow_copy, start_copy
from envs.suites.sites.golden import build_golden, sites_home
from envs.suites.sites.kinds import SiteName


def running_root() -> Path:
    """The folder of the detached copies of `mira sites up`, each in `NUMBER/NAME`."""
    return sites_home() / "running"


class Fleet:
    """Holds at most one copy of each site, below *folder*."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies: dict[SiteName, SiteCopy] = {}
        self._started = 0

    def __getitem__(self, name: SiteName) -> SiteCopy:
        """The copy of a site. Raises KeyError before `ready`."""
        return self._copies[name]

    async def ready(self, names: Sequence[SiteName]) -> None:
        """Starts or resets the sites *names*. Replaces a copy that cannot be reset.

        Raises BadInput if the extra `sites` is not installed, and ResetFailed.
        """
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(self._ready(name))

    async def problem(self, names: Sequence[SiteName]) -> str:
        """The problems of the copies of *names*; empty if all are healthy."""
        problems = await asyncio.gather(*(self._copies[name].problem() for name in names))
        return "; ".join(filter(None, problems))

    async def close(self) -> None:
        for copy in self._copies.values():
            await copy.close()
        self._copies.clear()

    async def _ready(self, name: SiteName) -> None:
        copy = self._copies.get(name)
        if copy is not None and not await copy.problem():
            try:
                await copy.reset()
                return
            except ResetFailed:
                pass  # replaced below
        if copy is not None:
            del self._copies[name]
            await copy.close()
        copy = await self._borrow(name) or await self._start(name)
        self._copies[name] = copy
        await copy.reset()

    async def _start(self, name: SiteName) -> SiteCopy:
        self._started += 1
        return await start_copy(name, self._folder / f"{name}-{self._started}")

    async def _borrow(self, name: SiteName) -> SiteCopy | None:
        """Locks a free detached copy that answers; None if there is none."""
        if not running_root().exists():
            return None
        golden = await build_golden(name)
        for folder in sorted(running_root().glob(f"*/{name}")):
            copy = borrow_copy(folder, golden)
            if copy is not None and not await copy.problem():
                return copy
            if copy is not None:
                await copy.close()
        return None
