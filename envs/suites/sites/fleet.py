"""The copies that one environment holds: started when a task first names their site, put back before every episode."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from envs.core.errors import ResetFailed
from envs.suites.sites.copies import SiteCopy, lent_copy, start_copy
from envs.suites.sites.golden import build_golden, sites_home
from envs.suites.sites.kinds import SiteName


def running_root() -> Path:
    """Below it lie the detached copies of `mira sites up`: `NUMBER/NAME`."""
    return sites_home() / "running"


class Fleet:
    """At most one copy of each site, below *folder*."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies: dict[SiteName, SiteCopy] = {}
        self._made = 0

    def __getitem__(self, name: SiteName) -> SiteCopy:
        """Raises KeyError for a site that was not made ready."""
        return self._copies[name]

    async def ready(self, names: Sequence[SiteName]) -> None:
        """The sites *names* run and are in their golden state. A copy that cannot be put back is replaced.

        Raises BadInput where the extra is not installed, and ResetFailed.
        """
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(self._ready(name))

    async def problem(self, names: Sequence[SiteName]) -> str:
        """Why the world of this episode is not to be trusted; empty if all is well."""
        told = await asyncio.gather(*(self._copies[name].problem() for name in names))
        return "; ".join(filter(None, told))

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
                pass  # what cannot be put back is thrown away, below
        if copy is not None:
            del self._copies[name]
            await copy.close()
        copy = await self._lent(name) or await self._start(name)
        self._copies[name] = copy
        await copy.reset()

    async def _start(self, name: SiteName) -> SiteCopy:
        self._made += 1
        return await start_copy(name, self._folder / f"{name}-{self._made}")

    async def _lent(self, name: SiteName) -> SiteCopy | None:
        """A detached copy that nobody holds and that answers."""
        if not running_root().exists():
            return None
        golden = await build_golden(name)
        for folder in sorted(running_root().glob(f"*/{name}")):
            copy = lent_copy(folder, golden)
            if copy is not None and not await copy.problem():
                return copy
            if copy is not None:
                await copy.close()
        return None
