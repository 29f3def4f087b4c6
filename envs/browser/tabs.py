"""The tabs of one browser context: which is in front, how many may be open, which died."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import BrowserContext, Page
from playwright.async_api import Error as PlaywrightError

from envs.browser.event_counter import EventCounter
from envs.browser.isolated_world import Isolated
from envs.core.errors import PageCrashed
from envs.core.observation import Tab
from envs.core.record import storable
from envs.core.settings import SessionSettings
from envs.observer.observer import Observer

CLOSE_S = 2.0
OPEN_S = 10.0
ASK_S = 2.0


@dataclass(eq=False)
class OpenTab:
    """One page with what belongs to it."""

    page: Page
    world: Isolated
    observer: Observer
    crashed: bool = False


@dataclass
class Tabs:
    """The pages of a context in the order they were opened. There is always a front one."""

    context: BrowserContext
    settings: SessionSettings
    on_open: Callable[[OpenTab], None]
    allowed: Callable[[str], bool]
    """May an iframe's document of this address be read?"""
    all: list[OpenTab] = field(default_factory=list[OpenTab])
    opened: EventCounter = field(default_factory=EventCounter)
    """Tabs that pages opened by themselves; one may have been refused silently."""
    refused: int = 0
    """Tabs closed because there were too many, so far."""
    _front: OpenTab | None = None
    _expected: bool = False
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])

    @property
    def front(self) -> OpenTab:
        """Raises PageCrashed where no tab is left: the browser died."""
        if self._front is None:
            raise PageCrashed("no tab is left: the browser died")
        return self._front

    def focus(self, tab: OpenTab) -> None:
        self._front = tab

    def arrived(self, page: Page) -> None:
        """Handler of the context's `page` event: a page of ours, or a window that a page opened."""
        if not self._expected:
            self.opened.add()
            if len(self.all) >= self.settings.max_tabs:
                self.refused += 1
                self._spawn(close_page(page))
                return
        self._add(page)

    async def open(self, seconds: float = OPEN_S) -> OpenTab:
        """A fresh blank tab, in front."""
        self._expected = True
        try:
            async with asyncio.timeout(seconds):
                page = await self.context.new_page()
        finally:
            self._expected = False
        found = self.of(page) or self._add(page)
        self._front = found
        return found

    async def close(self, tab: OpenTab) -> None:
        """Closes *tab*, hung or not; the last opened one left comes to the front, a blank one if none is."""
        self._drop(tab)
        await close_page(tab.page)
        await self.ensure()

    async def ensure(self) -> None:
        """Makes sure that there is a front tab (a page can close itself)."""
        if self._front is None:
            await self.open()

    def of(self, page: Page) -> OpenTab | None:
        return next((tab for tab in self.all if tab.page is page), None)

    async def listing(self) -> tuple[Tab, ...]:
        """The tabs as the browser knows them; asks no page."""
        if len(self.all) == 1:
            return (Tab(index=0, title="", url=storable(self.front.page.url), active=True),)
        return tuple(await asyncio.gather(*(self._tab(i, tab) for i, tab in enumerate(self.all))))

    async def _tab(self, index: int, tab: OpenTab) -> Tab:
        title = ""
        try:
            async with asyncio.timeout(ASK_S):
                title, _ = await tab.world.shown()
        except (PlaywrightError, TimeoutError):
            title = ""  # it is closing
        return Tab(index=index, title=storable(title), url=storable(tab.page.url), active=tab is self._front)

    def _add(self, page: Page) -> OpenTab:
        known = self.of(page)
        if known is not None:
            return known
        tab = OpenTab(page=page, world=Isolated(page), observer=Observer(page, self.settings.observe, self.allowed))
        self.all.append(tab)
        self._front = tab
        page.on("close", lambda _: self._drop(tab))
        self.on_open(tab)
        return tab

    def _drop(self, tab: OpenTab) -> None:
        if tab in self.all:
            self.all.remove(tab)
        if self._front is tab:
            self._front = self.all[-1] if self.all else None

    def _spawn(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(call)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def close_page(page: Page) -> None:
    """Closes a page within a bound, without asking it (no beforeunload)."""
    try:
        async with asyncio.timeout(CLOSE_S):
            await page.close()
    except (PlaywrightError, TimeoutError):
        return  # it is closed, or its process hangs and goes with the context


async def step_back(page: Page, shows: Callable[[str], bool], seconds: float) -> bool:
    """One entry back; whether it *shows* something again. The failure of a refused visit may come so late that it is
    reported as that of the way back, which goes on: then what the tab shows tells."""
    try:
        async with asyncio.timeout(seconds):
            try:
                await page.go_back(wait_until="commit", timeout=seconds * 1000)
            except PlaywrightError:
                await page.wait_for_url(shows, wait_until="commit", timeout=seconds * 1000)
    except (PlaywrightError, TimeoutError):
        return False
    return shows(page.url)
