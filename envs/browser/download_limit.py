"""Cancels a download while it streams, as soon as it exceeds the size limit.

Playwright reports a file only when it is complete, which is too late to protect the disk. Chromium reports the start
of each download with the declared length and the file name. A declared length over the limit is refused at once.
Otherwise the file's size is checked every `POLL_S` seconds until the download ends; the limit can be exceeded by what
arrives between two checks.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from playwright.async_api import Browser, BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError

POLL_S = 0.02


class DownloadFolders(NamedTuple):
    arriving: Path
    """The browser's folder, to which Chromium writes each download under its id."""
    kept: Path
    """The run's folder for completed downloads."""


class DownloadLimits(NamedTuple):
    """Size limits in bytes."""

    max_bytes: int
    """For one download."""
    max_total: int
    """For the stored downloads of the run plus the unfinished ones of this context."""

    def excess(self, size: int, total: int) -> str | None:
        """Returns why a download of *size* bytes (*total* with all others of the run) is refused; None if allowed."""
        if size > self.max_bytes:
            return f"{size} bytes, the limit is {self.max_bytes}"
        if total > self.max_total:
            return f"{total} bytes in this run, the limit is {self.max_total}"
        return None


class DownloadLimit:
    """Enforces the limits on the downloads of one context; `refused` gives the reason of a cancellation."""

    def __init__(self, session: CDPSession, context_id: str, folders: DownloadFolders, limits: DownloadLimits) -> None:
        self._session = session
        self._context_id = context_id
        self._folders = folders
        self._limits = limits
        self._kept = 0
        """Bytes of the run's stored downloads when the latest download began."""
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._sizes: dict[str, int] = {}
        """Bytes of each unfinished download, declared or received, by Chromium's id."""
        self._refused: dict[tuple[str, str], str] = {}

    @classmethod
    async def start(
        cls, browser: Browser, context: BrowserContext, page: Page, folders: DownloadFolders, limits: DownloadLimits
    ) -> Self:
        """Starts to watch the downloads of *context*, to which *page* belongs. Raises PlaywrightError."""
        target = await context.new_cdp_session(page)
        context_id: str = (await target.send("Target.getTargetInfo"))["targetInfo"]["browserContextId"]
        await target.detach()
        session = await browser.new_browser_cdp_session()
        limit = cls(session, context_id, folders, limits)
        session.on("Browser.downloadWillBegin", limit._begun)
        session.on("Browser.downloadProgress", limit._progressed)
        # The same behavior as Playwright's own; the events are now also sent to this session.
        behavior = {"behavior": "allowAndName", "downloadPath": str(folders.arriving), "eventsEnabled": True}
        await session.send("Browser.setDownloadBehavior", {**behavior, "browserContextId": context_id})
        return limit

    def refused(self, url: str, name: str) -> str | None:
        """Returns why the download of *url* with this suggested name was cancelled; None if it was not."""
        return self._refused.get((url, name))

    async def close(self) -> None:
        for task in self._watching.values():
            task.cancel()
        with suppress(PlaywrightError):  # the browser is gone
            await self._session.detach()

    def _begun(self, event: dict[str, Any]) -> None:
        guid = event["guid"]
        self._sizes[guid] = 0
        self._kept = bytes_in(self._folders.kept)
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
        file = self._folders.arriving / guid
        while (why := self._excess(guid)) is None:
            await asyncio.sleep(POLL_S)
            with suppress(OSError):  # it does not exist yet, or was moved already
                self._grown(guid, file.stat().st_size)
        self._refused[key] = why
        with suppress(PlaywrightError):  # it ended at this moment
            await self._session.send("Browser.cancelDownload", {"guid": guid, "browserContextId": self._context_id})

    def _excess(self, guid: str) -> str | None:
        return self._limits.excess(self._sizes.get(guid, 0), self._kept + sum(self._sizes.values()))


def bytes_in(folder: Path) -> int:
    """Returns the size of the files in *folder*; 0 if it does not exist."""
    return sum(file.stat().st_size for file in folder.iterdir()) if folder.is_dir() else 0
