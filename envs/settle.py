"""When is a page quiet after an action: adaptive, event-driven, bounded, and cheap when nothing happens.

The page itself says when no mutation came for a while (one call, pristine built-ins); the browser's
events say what is in flight on the network. Requests that never end by nature (event streams,
WebSockets, media, beacons) and changes of `style` alone (animations) do not count.
"""

from __future__ import annotations

import asyncio
import time

from playwright.async_api import BrowserContext, Page, Request
from playwright.async_api import Error as PlaywrightError

from envs.isolated import Isolated
from envs.settings import SettleSettings

COUNTED = frozenset({"document", "stylesheet", "script", "xhr", "fetch", "font", "image"})
POLL_S = 0.25
"""Longest sleep while something is in flight: its end wakes us earlier."""

# Resolves with the number of changes seen, once `quiet` ms passed without one (or `most` ms passed at all).
QUIET = """(quiet, most) => new Promise(done => {
  let seen = 0, timer = 0;
  const end = () => { observer.disconnect(); clearTimeout(cap); clearTimeout(timer); done(seen); };
  const observer = new MutationObserver(records => {
    const real = records.filter(r => r.type !== 'attributes' || r.attributeName !== 'style').length;
    if (!real) return;
    seen += real;
    clearTimeout(timer);
    timer = setTimeout(end, Math.max(quiet, WAIT));
  });
  const WAIT = QUIET_AFTER_CHANGE;
  const cap = setTimeout(end, most);
  timer = setTimeout(end, quiet);
  observer.observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
})"""


class Traffic:
    """Counts what is in flight in one browser context."""

    def __init__(self, context: BrowserContext) -> None:
        self._open: set[Request] = set()
        self._changed = asyncio.Event()
        self.started = 0
        """Requests that count, started so far."""
        context.on("request", self._begin)
        context.on("requestfinished", self._end)
        context.on("requestfailed", self._end)

    def forget(self) -> None:
        """What is in flight before an action is not waited for after it (a long poll would cost each step its bound)."""
        self._open.clear()

    @property
    def quiet(self) -> bool:
        return not self._open

    async def ended(self, seconds: float) -> None:
        """Returns when nothing is in flight, at most *seconds* later."""
        stop = time.monotonic() + seconds
        while self._open and (left := stop - time.monotonic()) > 0:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), min(left, POLL_S))
            except TimeoutError:
                continue

    def _begin(self, request: Request) -> None:
        if request.resource_type in COUNTED:
            self.started += 1
            self._open.add(request)

    def _end(self, request: Request) -> None:
        self._open.discard(request)
        self._changed.set()


async def settle(page: Page, world: Isolated, traffic: Traffic, settings: SettleSettings) -> None:
    """Returns when *page* is quiet or `settings.max_s` have passed. Raises nothing a page can cause but a crash."""
    stop = time.monotonic() + settings.max_s
    script = QUIET.replace("QUIET_AFTER_CHANGE", str(settings.quiet_ms))
    quiet_ms = settings.idle_after_ms
    while (left := stop - time.monotonic()) > 0:
        try:
            async with asyncio.timeout(left + 0.2):
                await world.call(script, quiet_ms, int(left * 1000))
        except TimeoutError:
            return
        except PlaywrightError:
            await _document(page, stop - time.monotonic())
            quiet_ms = settings.quiet_ms
            continue
        if traffic.quiet:
            return
        await traffic.ended(stop - time.monotonic())
        quiet_ms = settings.idle_after_ms


async def _document(page: Page, seconds: float) -> None:
    """The document was replaced under our feet: waits until the next one is parsed."""
    if page.is_closed() or seconds <= 0:
        return
    try:
        await page.wait_for_load_state("domcontentloaded", timeout=seconds * 1000)
    except PlaywrightError:
        return
