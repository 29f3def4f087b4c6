"""Waits until a page is quiet after an action: event-driven, with a timeout, and fast if nothing happens.

A script in the isolated world reports when there was no mutation for a while; browser events report loading and pending
requests. It does not wait for requests that may never end (event streams, WebSockets, media, beacons), for images and
fonts, for requests from before the action, for changes of `style` only (animations), or for changes inside frames.
Delayed reactions get additional time (:func:`late_reaction`).
"""

from __future__ import annotations

import asyncio
import time

from playwright.async_api import BrowserContext, Page, Request
from playwright.async_api import Error as PlaywrightError

from envs.browser.isolated_world import Isolated
from envs.core.actions import Action, Hover, Press, Type
from envs.core.settings import SettleSettings

COUNTED = frozenset({"document", "stylesheet", "script", "xhr", "fetch"})
BLANK = ("", "about:blank")
RETRY_S = 0.01
GRACE_S = 0.3
"""Delay after its own timer within which a page must answer; otherwise it counts as busy."""

# The scripts are in `envs/observer/in_page/settling.js`, where each is described.
QUIET = "(idle, quiet, most) => mira.untilQuiet(idle, quiet, most)"
FIRST_CHANGE = "most => mira.firstChange(most)"
FIRST_SUGGESTION = "most => mira.firstSuggestion(most)"


class Traffic:
    """Pending requests of one browser context."""

    def __init__(self, context: BrowserContext) -> None:
        self._open: set[Request] = set()
        self._none = asyncio.Event()
        self._none.set()
        context.on("request", self._begins)
        context.on("requestfinished", self._ends)
        context.on("requestfailed", self._ends)

    @property
    def quiet(self) -> bool:
        return not self._open

    def forget(self) -> None:
        """Forgets pending requests. Called before an action, because an earlier long poll would delay every step."""
        self._open.clear()
        self._none.set()

    async def none(self) -> None:
        """Waits until no request is pending."""
        await self._none.wait()

    def _begins(self, request: Request) -> None:
        if request.resource_type in COUNTED:
            self._open.add(request)
            self._none.clear()

    def _ends(self, request: Request) -> None:
        self._open.discard(request)
        if not self._open:
            self._none.set()


async def settle(page: Page, world: Isolated, traffic: Traffic, settings: SettleSettings) -> None:
    """Waits until *page* is quiet, at most `settings.max_s` plus GRACE_S. No page behaviour raises an exception."""
    stop = time.monotonic() + settings.max_s
    try:
        async with asyncio.timeout(settings.max_s + GRACE_S):
            await _new_window(page, world, settings.max_s)
            while not page.is_closed() and (left := stop - time.monotonic()) > 0:
                if await _still(world, settings, left) and traffic.quiet and not world.loading:
                    return
                await world.loaded()
                await traffic.none()
    except TimeoutError:
        return


async def _new_window(page: Page, world: Isolated, seconds: float) -> None:
    """Waits for the document of a new window, which is blank at first."""
    if page.url not in BLANK:
        return
    try:
        _, address = await world.shown()
        if address not in BLANK:
            await page.wait_for_url(lambda url: url not in BLANK, wait_until="commit", timeout=seconds * 1000)
    except PlaywrightError:
        return  # it was closed, or its document did not load


async def _still(world: Isolated, settings: SettleSettings, left: float) -> bool:
    """Waits until the document is quiet; False if it was replaced meanwhile."""
    try:
        await world.call(QUIET, settings.idle_after_ms, settings.quiet_ms, int(left * 1000))
        return True
    except PlaywrightError:
        await asyncio.sleep(RETRY_S)  # it navigated, crashed or was closed: the loop and the session find out which
        return False


async def first_change(world: Isolated, seconds: float) -> bool:
    """Waits until the document changes or is replaced; False if neither happens within *seconds*."""
    return await _changes(world, FIRST_CHANGE, seconds)


async def late_reaction(world: Isolated, action: Action, seconds: float) -> bool:
    """Waits like :func:`first_change` after a hover or typing that may show suggestions; False at once for others.

    Pages often open menus and fetch suggestions about 0.3 s after the last movement or key, by a timer that is not
    visible from outside.
    """
    match action:
        case Hover():
            return await _changes(world, FIRST_CHANGE, seconds)
        case Type() | Press():
            return await _changes(world, FIRST_SUGGESTION, seconds)
        case _:
            return False


async def _changes(world: Isolated, script: str, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds + GRACE_S):
            return bool(await world.call(script, int(seconds * 1000)))
    except TimeoutError:
        return False  # the page hangs; the next call detects it
    except PlaywrightError:
        return True
