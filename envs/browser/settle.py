"""Waits until a page is quiet after an action: event-driven, with a timeout, and fast if nothing happens.

A script in the isolated world reports when there was no mutation for a while and nothing says that the page is at work
(`aria-busy`, progress bars, spinners and skeletons that appeared with the action); browser events report loading and
pending requests (:mod:`envs.browser.traffic`). It does not wait for changes of `style` only (animations). Delayed
reactions get additional time (:func:`late_reaction`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Literal

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from envs.browser.isolated_world import Isolated
from envs.browser.tabs import Tabs
from envs.browser.traffic import Traffic
from envs.core.settings import SettleSettings

BLANK = ("", "about:blank")
RETRY_S = 0.01
GRACE_S = 0.3
"""Delay after its own timer within which a page must answer; otherwise it counts as busy."""
MAX_SIGNS = 1_000
POLL_S = 0.25
"""Longest pause between two checks of a wait: changes in frames of other processes are not reported."""

# The scripts are in `envs/observer/in_page/settling.js` and `watching.js`, where each is described.
QUIET = "(...args) => mira.untilQuiet(...args)"
FIRST_CHANGE = "most => mira.firstChange(most)"
OFFERS_SUGGESTIONS = "() => mira.offersSuggestions()"
MARK = "point => mira.markPage(point)"
UNMARK = "() => mira.unmarkPage()"
CHANGE = "byPointer => mira.changeSinceMark(byPointer)"

Change = Literal["", "no", "text", "yes"]
"""What an action changed in a document: something other than text, perhaps its text, or nothing; "" where the document
was not marked before the action."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """How a page came to rest."""

    change: Change = ""
    answered: bool = True
    """False: nothing changed but, at most, the control that was used."""
    in_time: bool = False
    """False: it was still at work, or it does not answer."""


async def mark(world: Isolated, point: tuple[float, float] | None, seconds: float) -> None:
    """Begins an action, at *point* where it is the pointer's: what the page changes from now on is kept. A page that
    does not answer is not marked."""
    await _bounded(world.call(MARK, point), seconds)


async def unmark(world: Isolated, seconds: float) -> None:
    """Ends an action: what the page changes from now on is its own."""
    await _bounded(world.call(UNMARK), seconds)


async def change_since_mark(world: Isolated, *, by_pointer: bool, seconds: float) -> Change:
    """Returns what an open document changed since its mark."""
    return await _bounded(world.call(CHANGE, by_pointer), seconds) or ""


async def _bounded(call: Coroutine[Any, Any, Any], seconds: float) -> Any:
    try:
        async with asyncio.timeout(seconds):
            return await call
    except (TimeoutError, PlaywrightError):
        return None


async def settle(
    page: Page, world: Isolated, traffic: Traffic, settings: SettleSettings, *, by_pointer: bool = False
) -> Quiet:
    """Waits until *page* is quiet, at most `settings.max_s` plus GRACE_S. No page behaviour raises an exception.

    *by_pointer*: the action was a click or the like, which moves the focus on the way."""
    stop = time.monotonic() + settings.max_s
    quiet = Quiet()
    idle_ms = settings.idle_after_ms
    try:
        async with asyncio.timeout(settings.max_s + GRACE_S):
            await _new_window(page, world, settings.max_s)
            while not page.is_closed() and (left := stop - time.monotonic()) > 0:
                begun = traffic.begun
                quiet = await _still(world, traffic, settings, (idle_ms, left, by_pointer)) or Quiet()
                if quiet.in_time and traffic.quiet and not world.loading and begun == traffic.begun:
                    return quiet
                await world.loaded()
                await traffic.none()
                idle_ms = settings.quiet_ms  # an answer is rendered in several turns
    except TimeoutError:
        pass
    if time.monotonic() >= stop:
        traffic.give_up()
    return quiet


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


async def _still(
    world: Isolated, traffic: Traffic, settings: SettleSettings, bounds: tuple[int, float, bool]
) -> Quiet | None:
    """Waits until the document is quiet; None if it was replaced meanwhile. *bounds*: ms without any change, seconds in
    all, whether the action was the pointer's."""
    idle_ms, left, by_pointer = bounds
    try:
        answer = await world.call(
            QUIET, idle_ms, settings.quiet_ms, int(left * 1000), sorted(traffic.signs), by_pointer
        )
    except PlaywrightError:
        await asyncio.sleep(RETRY_S)  # it navigated, crashed or was closed: the loop and the session find out which
        return None
    if answer["work"] and len(traffic.signs) < MAX_SIGNS:
        traffic.signs.update(answer["work"])
    return Quiet(answer["change"], answer["answered"], in_time=not answer["work"])


async def first_change(world: Isolated, seconds: float) -> bool:
    """Waits until the document changes or is replaced; False if neither happens within *seconds*."""
    try:
        async with asyncio.timeout(seconds + GRACE_S):
            return bool(await world.call(FIRST_CHANGE, int(seconds * 1000)))
    except TimeoutError:
        return False  # the page hangs; the next call detects it
    except PlaywrightError:
        return True


async def differs_from_observation(tabs: Tabs, traffic: Traffic, seconds: float) -> bool:
    """Waits until the front tab differs from its last observation, or another tab is in front; False if that does not
    happen within half of *seconds*, or within *seconds* while a request is pending."""
    front, begun = tabs.front, time.monotonic()
    while not await front.observer.differs():
        passed = time.monotonic() - begun
        left = (seconds if traffic.waiting else seconds / 2) - passed
        if left <= 0:
            return False
        await first_change(front.world, min(left, POLL_S))
        if tabs.all and tabs.front is not front:
            return True
    return True


async def late_reaction(world: Isolated, traffic: Traffic, seconds: float) -> bool:
    """Waits until the document changes or a request begins; False if neither happens within *seconds*.

    Pages often open menus, fetch suggestions or filter lists about 0.3 s after the last movement or key, by a timer
    that is not visible from outside."""
    waits = {asyncio.ensure_future(first_change(world, seconds)), asyncio.ensure_future(traffic.next())}
    try:
        done, _ = await asyncio.wait(waits, timeout=seconds + GRACE_S, return_when=asyncio.FIRST_COMPLETED)
        return any(one.result() is not False for one in done)
    finally:
        for one in waits:
            one.cancel()


async def offers_suggestions(world: Isolated, seconds: float) -> bool:
    """Whether the focused field offers suggestions."""
    return bool(await _bounded(world.call(OFFERS_SUGGESTIONS), seconds))
