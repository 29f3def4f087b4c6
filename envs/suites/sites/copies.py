"""Copies of a site: one server process over one folder, started in seconds and put back in milliseconds.

A copy belongs to whoever holds it: no two rollouts ever share one. Guarantees:
  - A copy ends with the process that started it, also when that is killed; except detached ones (`mira sites up`),
    which last until `mira sites down` and are lent to one holder at a time.
  - `reset` returns only when the golden state is back; it raises where the server crashed, hangs or cannot write,
    and a copy that raised is not used again: `close` it and start another.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from envs.core.errors import ResetFailed
from envs.core.wait_notices import waiting_for
from envs.suites.sites.apps.base import DATABASE, FILES, FIXED
from envs.suites.sites.control import SERVER, ServerInfo, ask
from envs.suites.sites.golden import build_golden, child_environment
from envs.suites.sites.kinds import SiteName
from envs.suites.sites.recorder import ALIVE
from envs.suites.sites.requests import Request, read_log

START_S = 60.0
PING_S = 3.0
RESET_S = 15.0
STOP_S = 3.0
POLL_S = 0.02
SERVER_LOG = "server.log"
LEASE = "lease"
_ERROR = re.compile(r"[\w.]+(Error|Exception|Missing|BadInput)\b")
"""The line of a traceback that says what is wrong."""


class SiteCopy:
    """A running copy, held by this process."""

    def __init__(self, folder: Path, golden: Path, info: ServerInfo, *, lease: int | None) -> None:
        self.folder = folder
        self.golden = golden
        self.info = info
        self._lease = lease
        """Set for a detached copy: it is given back on closing, not ended."""
        self.process: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port on loopback."""
        return "127.0.0.1", self.info.port

    @property
    def database(self) -> Path:
        return self.folder / DATABASE

    @property
    def golden_database(self) -> Path:
        return self.golden / DATABASE

    def requests(self) -> tuple[Request, ...]:
        """What reached the server since the reset."""
        return read_log(self.folder)

    def memory_bytes(self) -> int:
        """Resident memory of the server process; 0 if it is gone."""
        return memory_bytes(self.info.pid)

    async def problem(self) -> str:
        """Why this copy is not to be trusted: it crashed, hangs, or its disk is full; empty if it is well."""
        if self.process is not None and self.process.returncode is not None:
            return f"the server of {self.info.name} ended (exit {self.process.returncode})"
        try:
            reply = await ask(self.info.socket, "ping", PING_S)
            return reply.problem or await self._silent()
        except ResetFailed as error:
            return str(error)

    async def _silent(self) -> str:
        """Asks over HTTP, as a browser does."""
        try:
            async with asyncio.timeout(PING_S):
                reader, writer = await asyncio.open_connection(*self.address)
                try:
                    host = "{}:{}".format(*self.address)
                    writer.write(f"GET {ALIVE} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
                    answer = await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError) as error:
            return f"the server of {self.info.name} does not answer ({type(error).__name__})"
        return "" if b" 204 " in answer else f"the server of {self.info.name} answers {answer[:60]!r}"

    async def reset(self) -> float:
        """Back to the golden state; the seconds it took. Raises ResetFailed."""
        began = time.monotonic()
        reply = await ask(self.info.socket, "reset", RESET_S)
        if not reply.ok:
            raise ResetFailed(f"the site {self.info.name} could not be reset: {reply.problem}")
        return time.monotonic() - began

    async def close(self) -> None:
        """Ends an own copy and removes its folder; gives a detached one back."""
        if self._lease is not None:
            os.close(self._lease)
            self._lease = None
            return
        await _end(self.process)
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


async def start_copy(name: SiteName, folder: Path, *, detached: bool = False) -> SiteCopy:
    """Lays out *folder*, starts its server and waits until it answers. Raises BadInput and ResetFailed."""
    golden = await build_golden(name)
    waiting_for(f"starting the site {name}")
    await asyncio.to_thread(_lay_out, golden, folder)
    held = lease(folder) if detached else None  # before it answers: a run that looks for a copy would take it
    log = os.open(folder / SERVER_LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "envs.suites.sites.serving", name, str(folder), str(golden)),
            *(("--detached",) if detached else ()),
            cwd=folder,
            env=child_environment(),
            stdin=asyncio.subprocess.DEVNULL if detached else asyncio.subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(log)
    try:
        info = await _answering(process, folder)
    except BaseException:
        await _end(process)
        if held is not None:
            os.close(held)
        raise
    copy = SiteCopy(folder, golden, info, lease=held)
    copy.process = process
    return copy


def lent_copy(folder: Path, golden: Path) -> SiteCopy | None:
    """The detached copy in *folder* for this holder alone; None if it is held, gone, or of another golden state."""
    try:
        info = ServerInfo.model_validate_json((folder / SERVER).read_bytes())
        stale = (folder / FIXED).resolve() != (golden / FIXED).resolve()
    except (OSError, ValueError):
        return None
    if stale or not memory_bytes(info.pid):
        return None
    held = lease(folder)
    return SiteCopy(folder, golden, info, lease=held) if held is not None else None


def memory_bytes(pid: int) -> int:
    """Resident memory of a process; 0 if there is none of this number."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def database_digest(path: Path) -> str:
    """A hash over every row of every table: equal if and only if the contents are."""
    told = hashlib.sha256()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5.0)) as database:
        database.text_factory = _any_text
        for line in database.iterdump():
            told.update(line.encode("utf-8", "surrogateescape") + b"\n")
    return told.hexdigest()


def _any_text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _lay_out(golden: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if (golden / DATABASE).exists():
        shutil.copyfile(golden / DATABASE, folder / DATABASE)
    if (golden / FILES).exists():
        shutil.copytree(golden / FILES, folder / FILES)
    (folder / FIXED).symlink_to(golden / FIXED)


async def _answering(process: asyncio.subprocess.Process, folder: Path) -> ServerInfo:
    """What the server says of itself once it answers."""
    try:
        async with asyncio.timeout(START_S):
            while not (folder / SERVER).exists():
                if process.returncode is not None:
                    raise ResetFailed(f"the site ended at once: {_last_line(folder / SERVER_LOG)}")
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise ResetFailed(f"the site did not answer within {START_S:g} s (log: {folder / SERVER_LOG})") from None
    info = ServerInfo.model_validate_json((folder / SERVER).read_bytes())
    await ask(info.socket, "ping", PING_S)
    return info


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
    told = [line for line in lines if _ERROR.match(line)]
    return (told or lines or ["no word why"])[-1][:300]


def lease(folder: Path) -> int | None:
    handle = os.open(folder / LEASE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


async def _end(process: asyncio.subprocess.Process | None) -> None:
    if process is None or process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # its state is thrown away with it: there is nothing to save
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(STOP_S):
            await process.wait()
