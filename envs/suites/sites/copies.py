"""Copies of a site: one server process over one folder. It starts in seconds and resets in milliseconds.

One process holds a copy at a time; two rollouts never share one. Guarantees:
  - A copy ends with the process that started it, also when that process is killed. Detached copies (`mira sites up`)
    run until `mira sites down`.
  - `reset` returns after the golden state is restored. It raises if the server crashed, hangs or cannot write. Then
    `close` the copy and start another.
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
"""The line of a traceback that names the error."""


class SiteCopy:
    """A running copy that this process holds."""

    def __init__(self, folder: Path, golden: Path, info: ServerInfo, *, lease: int | None) -> None:
        self.folder = folder
        self.golden = golden
        self.info = info
        self._lease = lease
        """File descriptor of the lock of a detached copy. Closing releases such a copy instead of ending it."""
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
        """The requests that the server received since the reset."""
        return read_log(self.folder)

    def memory_bytes(self) -> int:
        """Resident memory of the server process; 0 if the process ended."""
        return memory_bytes(self.info.pid)

    async def problem(self) -> str:
        """Why this copy is unusable (crashed, hanging, disk full); empty if it is healthy."""
        if self.process is not None and self.process.returncode is not None:
            return f"the server of {self.info.name} ended (exit {self.process.returncode})"
        try:
            reply = await ask(self.info.socket, "ping", PING_S)
            return reply.problem or await self._http_problem()
        except ResetFailed as error:
            return str(error)

    async def _http_problem(self) -> str:
        """Why the server does not answer over HTTP; empty if it does."""
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
        """Restores the golden state and returns the seconds it took. Raises ResetFailed."""
        began = time.monotonic()
        reply = await ask(self.info.socket, "reset", RESET_S)
        if not reply.ok:
            raise ResetFailed(f"the site {self.info.name} could not be reset: {reply.problem}")
        return time.monotonic() - began

    async def close(self) -> None:
        """Ends the server and removes the folder; releases a detached copy."""
        if self._lease is not None:
            os.close(self._lease)
            self._lease = None
            return
        await _end(self.process)
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


async def start_copy(name: SiteName, folder: Path, *, detached: bool = False) -> SiteCopy:
    """Creates *folder*, starts the server and waits until it answers. Raises BadInput and ResetFailed."""
    golden = await build_golden(name)
    waiting_for(f"starting the site {name}")
    await asyncio.to_thread(_lay_out, golden, folder)
    held = lease(folder) if detached else None  # before the server answers, so that no run borrows the copy
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
        info = await _wait_until_ready(process, folder)
    except BaseException:
        await _end(process)
        if held is not None:
            os.close(held)
        raise
    copy = SiteCopy(folder, golden, info, lease=held)
    copy.process = process
    return copy


def borrow_copy(folder: Path, golden: Path) -> SiteCopy | None:
    """Locks the detached copy in *folder*. None if it is locked, has ended or has another golden state."""
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
    """Resident memory of a process in bytes; 0 if it does not exist."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def database_digest(path: Path) -> str:
    """A hash of all rows of all tables. Two databases with equal hashes have equal contents."""
    digest = hashlib.sha256()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5.0)) as database:
        database.text_factory = _any_text
        for line in database.iterdump():
            digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()


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


async def _wait_until_ready(process: asyncio.subprocess.Process, folder: Path) -> ServerInfo:
    """Waits until the server answers and returns its addresses. Raises ResetFailed."""
    try:
        async with asyncio.timeout(START_S):
            while not (folder / SERVER).exists():
                if process.returncode is not None:
                    raise ResetFailed(f"the site's server ended at start: {_last_line(folder / SERVER_LOG)}")
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise ResetFailed(f"the site did not answer within {START_S:g} s (log: {folder / SERVER_LOG})") from None
    info = ServerInfo.model_validate_json((folder / SERVER).read_bytes())
    await ask(info.socket, "ping", PING_S)
    return info


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or ["no output"])[-1][:300]


def lease(folder: Path) -> int | None:
    """Locks the detached copy in *folder* and returns the file descriptor of the lock; None if it is locked."""
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
        os.killpg(process.pid, signal.SIGKILL)  # its state is discarded, so nothing has to be saved
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(STOP_S):
            await process.wait()
