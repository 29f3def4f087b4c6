"""Manages the tabs of one browser context: the front tab, the limit on open tabs, and crashes."""

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
TITLE_S = 2.0


@dataclass(eq=False)
class OpenTab:
    """An open page with its isolated world and its observer."""

    page: Page
    world: Isolated
    observer: Observer
    crashed: bool = False


@dataclass
class Tabs:
    """The pages of a context in the order in which they were opened."""

    context: BrowserContext
    settings: SessionSettings
    on_open: Callable[[OpenTab], None]
    allowed: Callable[[str], bool]
    """Whether the document of an iframe at this address may be read."""
    all: list[OpenTab] = field(default_factory=list[OpenTab])
    windows: EventCounter = field(default_factory=EventCounter)
    """Windows that pages opened, including refused ones."""
    refused: int = 0
    """Number of windows that were closed because of the limit."""
    _front: OpenTab | None = None
    _arriving: list[Page] | None = None
    """The pages that arrived while a tab of this session opens: which of them is that tab is known only then."""
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])

    @property
    def front(self) -> OpenTab:
        """The front tab. Raises PageCrashed if no tab is left because the browser died."""
        if self._front is None:
            raise PageCrashed("no tab is left: the browser died")
        return self._front

    def focus(self, tab: OpenTab) -> None:
        self._front = tab

    @property
    def others(self) -> tuple[OpenTab, ...]:
        """The tabs behind the front one."""
        return tuple(tab for tab in self.all if tab is not self._front)

    @property
    def opened(self) -> int:
        """Number of tabs that pages opened."""
        return self.windows.count - self.refused

    def arrived(self, page: Page) -> None:
        """Handler of the context's `page` event: a tab of this session, or a window that a page opened."""
        if self._arriving is not None:
            self._arriving.append(page)
        else:
            self._add_window(page)

    def _add_window(self, page: Page) -> None:
        if len(self.all) < self.settings.max_tabs:
            self._add(page)
        else:
            self.refused += 1
            self._spawn(close_page(page))
        self.windows.add()

    async def open(self, seconds: float = OPEN_S) -> OpenTab:
        """Opens a blank tab in front."""
        arriving = self._arriving = list[Page]()
        page: Page | None = None
        try:
            async with asyncio.timeout(seconds):
                page = await self.context.new_page()
            tab = self._add(page)
        finally:
            self._arriving = None
            for other in arriving:
                if other is not page:
                    self._add_window(other)
        self._front = tab
        return tab

    async def close(self, tab: OpenTab) -> None:
        """Closes *tab*, even if it hangs. The newest remaining tab, or a blank one, comes to the front."""
        self._drop(tab)
        await close_page(tab.page)
        await self.ensure()

    async def ensure(self) -> None:
        """Opens a blank tab if there is no front tab, because a page can close itself."""
        if self._front is None:
            await self.open()

    def of(self, page: Page) -> OpenTab | None:
        return next((tab for tab in self.all if tab.page is page), None)

    async def listing(self) -> tuple[Tab, ...]:
        """Lists the tabs from the browser's data, without calls into pages."""
        if len(self.all) == 1:
            return (Tab(index=0, title="", url=storable(self.front.page.url), active=True),)
        return tuple(await asyncio.gather(*(self._tab(i, tab) for i, tab in enumerate(self.all))))

    async def _tab(self, index: int, tab: OpenTab) -> Tab:
        title = ""
        try:
            async with asyncio.timeout(TITLE_S):
                title, _ = await tab.world.shown()
        except (PlaywrightError, TimeoutError):
            title = ""  # it is closing
        return Tab(index=index, title=storable(title), url=storable(tab.page.url), active=tab is self._front)

    def _add(self, page: Page) -> OpenTab:
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
    """Closes a page within a timeout, without beforeunload."""
    try:
        async with asyncio.timeout(CLOSE_S):
            await page.close()
    except (PlaywrightError, TimeoutError):
        return  # it is closed, or its process hangs and ends with the context


async def step_back(page: Page, shows: Callable[[str], bool], seconds: float) -> bool:
    """Goes one history entry back. Returns whether the tab then *shows* an allowed page.

    The error of a refused navigation may arrive late, as the error of going back, which still continues: then the
    tab's address decides.
    """
    try:
        async with asyncio.timeout(seconds):
            try:
                await page.go_back(wait_until="commit", timeout=seconds * 1000)
            except PlaywrightError:
                await page.wait_for_url(shows, wait_until="commit", timeout=seconds * 1000)
    except (PlaywrightError, TimeoutError):
        return False
    return shows(page.url)
