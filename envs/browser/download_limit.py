"""Cancels a download while it streams, as soon as it is larger than allowed.

Playwright hands a file over when it is whole, so a limit that is checked then is checked after the disk was filled.
Chromium reports each download when it begins, with the length that the server declared, and names the file that it
writes to. A declared length over the limit is refused at once; else the file's size is looked at every `LOOK_S` seconds
until it ends. A server faster than the disk can exceed the limit by what arrives in that time.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from playwright.async_api import Browser, BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError

LOOK_S = 0.02


class Places(NamedTuple):
    arriving: Path
    """Folder of the browser that Chromium writes downloads to, each named by its id."""
    kept: Path
    """Folder of the run that kept downloads are copied to."""


class Limits(NamedTuple):
    """In bytes."""

    max_bytes: int
    """Of one download."""
    max_total: int
    """Of the kept downloads of the run and those of this context under way."""

    def excess(self, size: int, total: int) -> str | None:
        """Why a download of *size* bytes, *total* with all others of the run, is refused; None where it is not."""
        if size > self.max_bytes:
            return f"{size} bytes, the limit is {self.max_bytes}"
        if total > self.max_total:
            return f"{total} bytes in this run, the limit is {self.max_total}"
        return None


class DownloadLimit:
    """Watches the downloads of one context; `refused` tells why one was cancelled."""

    def __init__(self, session: CDPSession, context_id: str, places: Places, limits: Limits) -> None:
        self._session = session
        self._context_id = context_id
        self._places = places
        self._limits = limits
        self._kept = 0
        """Bytes of the run's kept downloads when the newest one began."""
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._sizes: dict[str, int] = {}
        """Bytes of each download under way, declared or received, by Chromium's id."""
        self._refused: dict[tuple[str, str], str] = {}

    @classmethod
    async def start(cls, browser: Browser, context: BrowserContext, page: Page, places: Places, limits: Limits) -> Self:
        """Begins to watch the downloads of *context*, to which *page* belongs. Raises PlaywrightError."""
        target = await context.new_cdp_session(page)
        context_id: str = (await target.send("Target.getTargetInfo"))["targetInfo"]["browserContextId"]
        await target.detach()
        session = await browser.new_browser_cdp_session()
        limit = cls(session, context_id, places, limits)
        session.on("Browser.downloadWillBegin", limit._begun)
        session.on("Browser.downloadProgress", limit._progressed)
        # The same behavior as Playwright's own; what is new is that its events reach this session too.
        behavior = {"behavior": "allowAndName", "downloadPath": str(places.arriving), "eventsEnabled": True}
        await session.send("Browser.setDownloadBehavior", {**behavior, "browserContextId": context_id})
        return limit

    def refused(self, url: str, name: str) -> str | None:
        """Why the download of *url* with this suggested name was cancelled; None where it was not."""
        return self._refused.get((url, name))

    async def close(self) -> None:
        for task in self._watching.values():
            task.cancel()
        with suppress(PlaywrightError):  # the browser is gone
            await self._session.detach()

    def _begun(self, event: dict[str, Any]) -> None:
        guid = event["guid"]
        self._sizes[guid] = 0
        self._kept = bytes_in(self._places.kept)
        self._watching[guid] = asyncio.ensure_future(self._watch(guid, (event["url"], event["suggestedFilename"])))

    def _progressed(self, event: dict[str, Any]) -> None:
        guid = event["guid"]
        if event["state"] == "inProgress":
            self._grown(guid, int(max(event["totalBytes"], event["receivedBytes"])))
            return
        self._sizes.pop(guid, None)
        if (task := self._watching.pop(guid, None)) is not None:
            task.cancel()

    def _grown(self, guid: str, size: int) -> None:
        if guid in self._sizes:
            self._sizes[guid] = max(size, self._sizes[guid])

    async def _watch(self, guid: str, key: tuple[str, str]) -> None:
        file = self._places.arriving / guid
        while (why := self._excess(guid)) is None:
            await asyncio.sleep(LOOK_S)
            with suppress(OSError):  # not there yet, or handed over already
                self._grown(guid, file.stat().st_size)
        self._refused[key] = why
        with suppress(PlaywrightError):  # it ended at this moment
            await self._session.send("Browser.cancelDownload", {"guid": guid, "browserContextId": self._context_id})

    def _excess(self, guid: str) -> str | None:
        return self._limits.excess(self._sizes.get(guid, 0), self._kept + sum(self._sizes.values()))


def bytes_in(folder: Path) -> int:
    """Bytes of the files in *folder*; 0 where it does not exist."""
    return sum(file.stat().st_size for file in folder.iterdir()) if folder.is_dir() else 0
