"""A browser window in which a person logs in, for the cookies and the storage that runs start with.

The person drives it: no model sees it, no allowlist applies, since logins lead to other sites, and nothing is recorded
but the state at the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from playwright.async_api import BrowserContext, async_playwright
from playwright.async_api import Error as PlaywrightError

from envs.browser.chromium import find_chromium, launch_failure, launch_s
from envs.core.errors import BrowserMissing

StorageState = dict[str, Any]
"""Cookies and local storage in Playwright's format."""


async def state_after_login(
    url: str, done: Callable[[], Awaitable[object]], *, headed: bool = True, proxy: str | None = None
) -> StorageState:
    """Opens *url* in a new profile, and returns its state once *done* returns or the last tab is closed.

    An address that cannot be opened is left to the person to correct. Raises BrowserMissing."""
    async with async_playwright() as playwright:
        chromium = find_chromium(playwright.chromium.executable_path)
        try:
            browser = await playwright.chromium.launch(
                executable_path=chromium,
                headless=not headed,
                args=["--no-first-run", *([] if headed else ["--headless=new"])],
                proxy=None if proxy is None else {"server": proxy},
                chromium_sandbox=os.geteuid() != 0,
                timeout=launch_s() * 1000,
            )
        except PlaywrightError as error:
            raise BrowserMissing(f"Chromium at {chromium} does not start: {launch_failure(str(error))}") from error
        context = await browser.new_context(no_viewport=headed)
        closed = all_closed(context)
        page = await context.new_page()
        with suppress(PlaywrightError):  # the window shows the error
            await page.goto(url)
        waiting = asyncio.ensure_future(done())
        await asyncio.wait({waiting, asyncio.ensure_future(closed.wait())}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        state: Any = await context.storage_state()
        await browser.close()
        return state


def all_closed(context: BrowserContext) -> asyncio.Event:
    """An event that is set when the last tab of *context* has been closed. The browser runs on, and has its state."""
    closed = asyncio.Event()

    def check(_: object) -> None:
        if not context.pages:
            closed.set()

    context.on("page", lambda page: page.on("close", check))
    return closed
