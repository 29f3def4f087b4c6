"""When is a page quiet after an action: adaptive, event-driven, bounded, and cheap when nothing happens.

The page itself says when no mutation came for a while (one call, pristine built-ins); the browser's
events say whether it loads and what is in flight on the network. Not waited for: requests that may
never end (event streams, WebSockets, media, beacons), pictures and fonts, what was in flight before
the action, changes of `style` alone (animations), and changes inside frames. What is known to answer
late has some time to begin (:func:`late_reaction`).
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
"""How much later than its own timer a page may answer before it is taken to be busy."""

# The scripts are in `envs/observer/in_page/settling.js`, where each is described.
QUIET = "(idle, quiet, most) => mira.untilQuiet(idle, quiet, most)"
FIRST_CHANGE = "most => mira.firstChange(most)"
FIRST_SUGGESTION = "most => mira.firstSuggestion(most)"


class Traffic:
    """What is in flight in one browser context."""

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
        """Called before an action: a long poll from earlier would cost every step its whole bound."""
        self._open.clear()
        self._none.set()

    async def none(self) -> None:
        """Returns when nothing is in flight."""
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
    """Returns when *page* is quiet, or after `settings.max_s` and GRACE_S. Raises nothing a page can cause."""
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
    """A window that was just opened is blank until its document comes: waits for that."""
    if page.url not in BLANK:
        return
    try:
        _, address = await world.shown()
        if address not in BLANK:
            await page.wait_for_url(lambda url: url not in BLANK, wait_until="commit", timeout=seconds * 1000)
    except PlaywrightError:
        return  # it was closed, or its document never came


async def _still(world: Isolated, settings: SettleSettings, left: float) -> bool:
    """Waits until the document stands still; False if it was replaced meanwhile."""
    try:
        await world.call(QUIET, settings.idle_after_ms, settings.quiet_ms, int(left * 1000))
        return True
    except PlaywrightError:
        await asyncio.sleep(RETRY_S)  # navigated, crashed or closed: the loop and the session tell which
        return False


async def first_change(world: Isolated, seconds: float) -> bool:
    """Waits until the document changes or goes away; False if neither happened within *seconds*."""
    return await _changes(world, FIRST_CHANGE, seconds)


async def late_reaction(world: Isolated, action: Action, seconds: float) -> bool:
    """As :func:`first_change` after a hover or an entry that may bring suggestions; of any other action False at once.

    Menus open, and suggestions are fetched, a third of a second after the last movement or key: a timer of the page,
    which nothing outside it can see.
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
        return False  # it hangs: what comes next finds that out
    except PlaywrightError:
        return True
