"""Files that a page lets down: kept below the run's folder, hashed, named safely, limited in size."""

from __future__ import annotations

import asyncio
import hashlib
import re
from pathlib import Path

from playwright.async_api import Download as PlaywrightDownload
from playwright.async_api import Error as PlaywrightError

from envs.actions import Download
from envs.record import storable

FOLDER = "downloads"
MAX_NAME = 120
FINISH_S = 600.0
CLOSE_S = 2.0
POLL_S = 0.1


class Downloads:
    """The downloads of one session, kept in `folder/downloads`."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self._done: list[Download] = []
        self._refused: list[str] = []

    def arrived(self, download: PlaywrightDownload) -> None:
        """Handler of a page's `download` event."""
        task = asyncio.ensure_future(self._keep(download))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self, seconds: float) -> None:
        """Waits for what is still coming down, at most *seconds*; the rest is reported by a later step."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=max(0.0, seconds))

    def drain(self) -> tuple[tuple[Download, ...], tuple[str, ...]]:
        """(kept, why others were not) since the last call."""
        done, refused = self._done, self._refused
        self._done, self._refused = [], []
        return tuple(done), tuple(refused)

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=CLOSE_S)

    async def _keep(self, download: PlaywrightDownload) -> None:
        name = safe_name(download.suggested_filename)
        try:
            async with asyncio.timeout(FINISH_S):
                source = Path(await download.path())
            kept = await asyncio.to_thread(self._store, source, name)
            if isinstance(kept, Download):
                self._done.append(kept)
            else:
                self._refused.append(kept)
            await download.delete()
        except (PlaywrightError, OSError, TimeoutError) as error:
            self._refused.append(f"download {name!r} failed: {type(error).__name__}")

    def _store(self, source: Path, name: str) -> Download | str:
        """Copies the file; why not, if it may not be kept."""
        weight = source.stat().st_size
        if weight > self._max_bytes:
            return f"download {name!r} refused: {weight} bytes, the limit is {self._max_bytes}"
        home = self._folder / FOLDER
        home.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        target = home / name
        number = 1
        while True:
            try:
                out = target.open("xb")
                break
            except FileExistsError:
                target = home / f"{Path(name).stem}-{number}{Path(name).suffix}"
                number += 1
        with out, source.open("rb") as data:
            while block := data.read(1 << 20):
                digest.update(block)
                size += len(block)
                out.write(block)
        return Download(name=name, path=f"{FOLDER}/{target.name}", sha256=digest.hexdigest(), bytes=size)


def safe_name(suggested: str) -> str:
    """A plain file name: no folder, no control or shell-special characters, not hidden, at most MAX_NAME bytes."""
    base = re.split(r"[/\\]", storable(suggested))[-1]
    clean = re.sub(r"[^\w .()+-]", "_", base).strip(" .")
    stem, dot, suffix = clean.rpartition(".")
    if not dot:
        stem, suffix = clean, ""
    tail = f".{suffix[:16]}" if suffix else ""
    room = MAX_NAME - len(tail.encode())
    stem = stem.encode()[:room].decode("utf-8", "ignore").strip(" .")
    return f"{stem or 'download'}{tail}"
