"""Finds the tabs whose last visit was refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from playwright.async_api import Error as PlaywrightError

from envs.browser.tabs import OpenTab
from envs.security.allowlist import origin_of
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.blocked_requests import Place

ERROR_PAGE: Final = "chrome-error:"
"""Prefix of the address of the browser's error page."""
ADDRESS_S: Final = 2.0


class RefusedVisit(NamedTuple):
    tab: OpenTab
    url: str


class RefusedVisits:
    """Compares the tabs of one session with the rules and with the requests that the proxy refused.

    An origin that the rules allow may be refused as well: its name may resolve to an address of this machine.
    """

    def __init__(self, boundary: AllowlistProxy, allowed: Callable[[str], bool]) -> None:
        """*allowed*: whether a tab may show this URL."""
        self._boundary = boundary
        self._allowed = allowed
        self._checked = len(boundary.blocked)

    async def find(self, tabs: Sequence[OpenTab]) -> list[RefusedVisit]:
        """The tabs at a URL that is not allowed, or on the error page of a visit that was refused since the last
        call."""
        refusals = self._boundary.blocked[self._checked :]
        self._checked += len(refusals)
        refused = {place for place in map(_place, refusals) if place is not None}
        found: list[RefusedVisit] = []
        for tab in tabs:
            failed = tab.page.url.startswith(ERROR_PAGE)
            url = await _failed_address(tab) if failed else tab.page.url
            if not self._allowed(url) or (failed and _place(url) in refused):
                found.append(RefusedVisit(tab, url))
        return found


async def _failed_address(tab: OpenTab) -> str:
    """The address that failed to load in a tab on the error page; empty if the tab is closing."""
    try:
        async with asyncio.timeout(ADDRESS_S):
            return await tab.world.failed_address()
    except (PlaywrightError, TimeoutError):
        return ""


def _place(url: str) -> Place | None:
    """Host and port: the proxy guesses the scheme of a tunnel."""
    origin = origin_of(url)
    return None if origin is None else Place(origin.host, origin.port)
