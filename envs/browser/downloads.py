"""Stores downloaded files in the run's folder: hashed, with safe names and limited sizes.

A file that contains a declared secret, in any encoding that :mod:`envs.security.secret_bytes` detects, is not stored.
Secrets in file names are masked.

Every download is reported: by the result of a step (stored, refused, in progress, cancelled), or, after the last step,
by a line of `downloads/after-the-last-step.txt`.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from playwright.async_api import Download as PlaywrightDownload
from playwright.async_api import Error as PlaywrightError

from envs.browser.download_limit import DownloadLimit, DownloadLimits, bytes_in
from envs.browser.event_counter import EventCounter
from envs.core.actions import AFTER_LAST_STEP, DOWNLOADS, UNAPPROVED, Download
from envs.core.disk_errors import writing
from envs.core.errors import NotWritten
from envs.core.record import storable
from envs.security.secrets import NO_SECRETS, SecretVault

MAX_NAME = 120
FINISH_S = 600.0
CLOSE_S = 2.0


class Drained(NamedTuple):
    """Downloads that ended since the last report."""

    kept: tuple[Download, ...]
    messages: tuple[str, ...]
    """Why each of the others was not kept."""
    unapproved: int
    """How many of the others were cancelled because nobody had approved the step."""


class Downloads:
    """The downloads of one session, stored in `folder/downloads`."""

    def __init__(
        self, folder: Path, limits: DownloadLimits, secrets: SecretVault = NO_SECRETS, *, permitted: bool = True
    ) -> None:
        self.permitted = permitted
        """Whether downloads that begin now are stored; otherwise they are cancelled and reported."""
        self._secrets = secrets
        self._folder = folder
        self._limits = limits
        self._tasks: dict[asyncio.Task[None], str] = {}
        """Unfinished downloads with their names."""
        self.begun = EventCounter()
        self.limit: DownloadLimit | None = None
        """Cancels too large downloads while they stream; None: the size is checked when a download is complete."""
        self.not_written: NotWritten | None = None
        """The write that the disk refused, which ends the run."""
        self._done: list[Download] = []
        self._refused: list[str] = []
        self._unapproved = 0

    def arrived(self, download: PlaywrightDownload) -> None:
        """Handler of a page's `download` event."""
        name = self._name(download.suggested_filename)
        task = asyncio.ensure_future(self._keep(download, name) if self.permitted else self._refuse(download, name))
        self._tasks[task] = name
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        self.begun.add()

    def _name(self, suggested: str) -> str:
        """Returns a safe name with secrets masked. It masks twice, because a safe name may contain a value again."""
        for _ in range(2):
            suggested = safe_name(re.sub("</?secret>", "", self._secrets.mask(suggested)))
        return suggested

    def in_progress(self) -> tuple[str, ...]:
        """Returns the names of unfinished downloads."""
        return tuple(self._tasks.values())

    async def finish(self, seconds: float) -> None:
        """Waits for unfinished downloads, at most *seconds*; the others are reported by a later step."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=max(0.0, seconds))

    async def end(self, seconds: float) -> None:
        """Waits for unfinished downloads, at most *seconds*, and cancels the others; :meth:`drain` reports them."""
        late: dict[asyncio.Task[None], str] = {}
        try:
            await self.finish(seconds)
        finally:
            late.update(self._tasks)
            for task, name in late.items():
                task.cancel()
                self._refused.append(f"download {name!r} was given up: not complete {seconds:g} s after the end")
        if late:
            await asyncio.wait(tuple(late), timeout=CLOSE_S)

    def drain(self) -> Drained:
        """Returns what has happened since the last call."""
        drained = Drained(tuple(self._done), tuple(self._refused), self._unapproved)
        self._done, self._refused, self._unapproved = [], [], 0
        return drained

    async def close(self, seconds: float) -> None:
        """Ends unfinished downloads and writes a file about downloads that no step has reported."""
        await self.end(seconds)
        if self.limit is not None:
            await self.limit.close()
        kept, refused, _ = self.drain()
        lines = [*(f"download {file.name!r} is kept as {file.path}: {file.bytes} bytes" for file in kept), *refused]
        if lines:
            await asyncio.to_thread(self._write_report, "".join(f"{self._secrets.mask(line)}\n" for line in lines))

    def _write_report(self, text: str) -> None:
        home = self._folder / DOWNLOADS
        try:
            home.mkdir(parents=True, exist_ok=True)
            with (home / AFTER_LAST_STEP).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError:
            return  # the disk is full or the folder is gone, so the files are lost too

    async def _refuse(self, download: PlaywrightDownload, name: str) -> None:
        self._refused.append(f"download {name!r} {UNAPPROVED}")
        self._unapproved += 1
        with suppress(PlaywrightError, TimeoutError):  # the context is gone with its files
            async with asyncio.timeout(CLOSE_S):
                await download.cancel()
                await download.delete()

    async def _keep(self, download: PlaywrightDownload, name: str) -> None:
        try:
            async with asyncio.timeout(FINISH_S):
                source = Path(await download.path())
            kept = await asyncio.to_thread(self._store, source, name)
            if isinstance(kept, Download):
                self._done.append(kept)
            else:
                self._refused.append(kept)
            await download.delete()
        except NotWritten as error:
            self.not_written = error
            self._refused.append(f"download {name!r} was not kept: {error.why}")
        except (PlaywrightError, OSError, TimeoutError) as error:
            why = self.limit.refused(download.url, download.suggested_filename) if self.limit is not None else None
            self._refused.append(
                f"download {name!r} " + (f"refused: {why}" if why else f"failed: {type(error).__name__}")
            )

    def _store(self, source: Path, name: str) -> Download | str:
        """Copies the file, or returns why it may not be stored. Raises NotWritten, and leaves no file, if the disk
        refuses the write."""
        file_size = source.stat().st_size
        home = self._folder / DOWNLOADS
        if (why := self._limits.excess(file_size, bytes_in(home) + file_size)) is not None:
            return f"download {name!r} refused: {why}"
        if held := self._secrets.names_in_bytes(source.read_bytes()) if self._secrets else frozenset[str]():
            return f"download {name!r} refused: it holds the value of secret {', '.join(sorted(held))}"
        with writing(home):
            home.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with writing(home / name):
            target, out = _new_file(home, name)
            try:
                with out, source.open("rb") as data:
                    while block := data.read(1 << 20):
                        digest.update(block)
                        size += len(block)
                        out.write(block)
            except OSError:
                target.unlink(missing_ok=True)  # an incomplete file is useless and takes up space
                raise
        return Download(name=name, path=f"{DOWNLOADS}/{target.name}", sha256=digest.hexdigest(), bytes=size)


def _new_file(home: Path, name: str) -> tuple[Path, BinaryIO]:
    """Creates a file called *name*, or *name* with a number if it exists or is the name of Mira's own report."""
    target, number = home / name, 1
    while True:
        with suppress(FileExistsError):
            if target.name.casefold() != AFTER_LAST_STEP:  # some file systems ignore the case of names
                return target, target.open("xb")
        target = home / f"{Path(name).stem}-{number}{Path(name).suffix}"
        number += 1


def safe_name(suggested: str) -> str:
    """Returns a safe file name: no folder, no control or special characters, not hidden, at most MAX_NAME bytes."""
    base = re.split(r"[/\\]", storable(suggested))[-1]
    clean = re.sub(r"[^\w .()+-]", "_", base).strip(" .")
    stem, dot, suffix = clean.rpartition(".")
    if not dot:
        stem, suffix = clean, ""
    tail = f".{suffix[:16]}" if suffix else ""
    room = MAX_NAME - len(tail.encode())
    stem = stem.encode()[:room].decode("utf-8", "ignore").strip(" .")
    return f"{stem or 'download'}{tail}"
