"""Files that a page lets down: kept below the run's folder, hashed, named safely, limited in size.

A file that holds a declared secret, in any spelling that :mod:`envs.security.secret_bytes` finds, is not kept; in a
file's name the value is masked.

Every download is told of: by the result of a step (kept, refused, under way, given up), or, where no step was left to
tell it, by a line of `downloads/after-the-last-step.txt`.
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

from envs.browser.download_limit import DownloadLimit, Limits, bytes_in
from envs.browser.event_counter import EventCounter
from envs.core.actions import UNAPPROVED, Download
from envs.core.disk_errors import writing
from envs.core.errors import NotWritten
from envs.core.record import storable
from envs.security.secrets import NO_SECRETS, SecretVault

FOLDER = "downloads"
UNTOLD = "after-the-last-step.txt"
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
    """The downloads of one session, kept in `folder/downloads`."""

    def __init__(
        self, folder: Path, limits: Limits, secrets: SecretVault = NO_SECRETS, *, permitted: bool = True
    ) -> None:
        self.permitted = permitted
        """Whether what begins now is kept; else it is cancelled and reported."""
        self._secrets = secrets
        self._folder = folder
        self._limits = limits
        self._tasks: dict[asyncio.Task[None], str] = {}
        """Those under way, with their names."""
        self.begun = EventCounter()
        self.limit: DownloadLimit | None = None
        """Cancels what grows too large while it streams; None: the size is checked when a download is whole."""
        self.not_written: NotWritten | None = None
        """What the disk did not take; the run ends for it."""
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
        """A safe name with secrets' names for values. Masked twice: what is made safe may spell a value anew."""
        for _ in range(2):
            suggested = safe_name(re.sub("</?secret>", "", self._secrets.mask(suggested)))
        return suggested

    def under_way(self) -> tuple[str, ...]:
        """Names of what is still coming down."""
        return tuple(self._tasks.values())

    async def finish(self, seconds: float) -> None:
        """Waits for what is still coming down, at most *seconds*; the rest is reported by a later step."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=max(0.0, seconds))

    async def end(self, seconds: float) -> None:
        """Waits for what is still coming down, at most *seconds*, and gives up the rest; :meth:`drain` tells of it."""
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
        """Ends what is under way, and writes down what no step has told."""
        await self.end(seconds)
        if self.limit is not None:
            await self.limit.close()
        kept, refused, _ = self.drain()
        lines = [*(f"download {one.name!r} is kept as {one.path}: {one.bytes} bytes" for one in kept), *refused]
        if lines:
            await asyncio.to_thread(self._write_down, "".join(f"{self._secrets.mask(line)}\n" for line in lines))

    def _write_down(self, text: str) -> None:
        home = self._folder / FOLDER
        try:
            home.mkdir(parents=True, exist_ok=True)
            with (home / UNTOLD).open("a", encoding="utf-8") as file:
                file.write(text)
        except OSError:
            return  # the disk is full or the folder gone: the files were not kept either

    async def _refuse(self, download: PlaywrightDownload, name: str) -> None:
        self._refused.append(f"download {name!r} {UNAPPROVED}")
        self._unapproved += 1
        with suppress(PlaywrightError, TimeoutError):  # the context is gone, and its files with it
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
        """Copies the file; why not, if it may not be kept. Raises NotWritten, and leaves nothing, where the disk does
        not take it."""
        weight = source.stat().st_size
        home = self._folder / FOLDER
        if (why := self._limits.excess(weight, bytes_in(home) + weight)) is not None:
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
                target.unlink(missing_ok=True)  # half a file is none, and its room is wanted
                raise
        return Download(name=name, path=f"{FOLDER}/{target.name}", sha256=digest.hexdigest(), bytes=size)


def _new_file(home: Path, name: str) -> tuple[Path, BinaryIO]:
    """A file that was not there before, by *name* or by *name* with a number."""
    target, number = home / name, 1
    while True:
        try:
            return target, target.open("xb")
        except FileExistsError:
            target = home / f"{Path(name).stem}-{number}{Path(name).suffix}"
            number += 1


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
