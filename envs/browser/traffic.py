"""The pending requests of one browser context, by which a session tells whether a page still works on an action.

Counted are requests that change what a page shows: documents, scripts, style sheets, XHR and fetch. Not counted are
event streams, WebSockets, media, beacons, images and fonts, requests from before the action, and XHR and fetch to an
address whose last request took SLOW_S or longer (long polls, streams).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, Request, Response

COUNTED: Final = frozenset({"document", "stylesheet", "script", "xhr", "fetch"})
STREAMS: Final = ("text/event-stream", "multipart/x-mixed-replace", "application/x-ndjson", "application/grpc-web")
"""Content types of answers that may not end."""
SLOW_S: Final = 2.5
MAX_KEPT: Final = 1_000


class Traffic:
    """Pending requests of one browser context."""

    def __init__(self, context: BrowserContext, now: Callable[[], float] = time.monotonic) -> None:
        self.begun = 0
        """Number of counted requests since the last :meth:`forget`."""
        self.acted = False
        """Whether a document was requested, or anything by another method than GET, since the last :meth:`forget`."""
        self.signs: set[str] = set()
        """Signs of work on pages (spinners and the like) that did not end while a step waited for them."""
        self._now = now
        self._open: set[Request] = set()
        self._begun_at: dict[Request, float] = {}
        """Pending XHR and fetch requests, forgotten ones included."""
        self._slow: set[str] = set()
        self._none = asyncio.Event()
        self._none.set()
        self._next = asyncio.Event()
        context.on("request", self._begins)
        context.on("response", self._answered)
        context.on("requestfinished", self._ends)
        context.on("requestfailed", self._ends)

    @property
    def quiet(self) -> bool:
        return not self._open

    @property
    def waiting(self) -> bool:
        """Whether a page waits for an answer, to whatever it asked and however long."""
        return bool(self._open or self._begun_at)

    def forget(self) -> None:
        """Forgets pending requests. Called before an action, because an earlier long poll would delay every step."""
        self._open.clear()
        self._none.set()
        self.begun, self.acted = 0, False

    def give_up(self) -> None:
        """Stops waiting for pending requests; their addresses count as slow."""
        if len(self._slow) < MAX_KEPT:
            self._slow.update(_address(request) for request in self._open if request in self._begun_at)
        self._open.clear()
        self._none.set()

    async def none(self) -> None:
        """Waits until no request is pending."""
        await self._none.wait()

    async def next(self) -> None:
        """Waits until a counted request begins."""
        self._next.clear()
        await self._next.wait()

    def _begins(self, request: Request) -> None:
        if request.resource_type not in COUNTED:
            return
        self.acted = self.acted or request.resource_type == "document" or request.method not in ("GET", "HEAD")
        if request.resource_type in ("xhr", "fetch"):
            slow = self._is_slow(_address(request))
            if len(self._begun_at) < MAX_KEPT:
                self._begun_at[request] = self._now()
            if slow:
                return
        self.begun += 1
        self._open.add(request)
        self._none.clear()
        self._next.set()

    def _is_slow(self, address: str) -> bool:
        old = self._now() - SLOW_S
        return address in self._slow or any(
            begun <= old and _address(request) == address for request, begun in self._begun_at.items()
        )

    def _answered(self, response: Response) -> None:
        if response.headers.get("content-type", "").strip().lower().startswith(STREAMS):
            self._close(response.request)

    def _ends(self, request: Request) -> None:
        begun = self._begun_at.pop(request, None)
        if begun is not None:
            keep = self._slow.add if self._now() - begun >= SLOW_S else self._slow.discard
            keep(_address(request))
        self._close(request)

    def _close(self, request: Request) -> None:
        self._open.discard(request)
        if not self._open:
            self._none.set()


def _address(request: Request) -> str:
    """Method and address without the query, in which long polls number their turns."""
    try:
        parts = urlsplit(request.url)
    except ValueError:
        return request.method
    return f"{request.method} {parts.scheme}://{parts.netloc}{parts.path}"
