"""Detached copies that outlive a command: `mira sites up`, `status`, `down`. Runs borrow the free ones."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from envs.core.errors import ResetFailed
from envs.core.record import Record
from envs.suites.sites.control import SERVER, ServerInfo, ask
from envs.suites.sites.copies import PING_S, lease, memory_bytes, start_copy
from envs.suites.sites.fleet import running_root
from envs.suites.sites.golden import ReportLine, build_golden
from envs.suites.sites.kinds import KINDS, SiteName

AT_ONCE = 4
"""Servers that start at the same time."""
END_S = 3.0


class Running(Record):
    """The current state of one detached copy."""

    copy_number: int
    site: SiteName
    url: str
    pid: int
    megabytes: float
    """Resident memory of the server, 10^6 bytes; 0 if it ended."""
    state: str
    """free, held (a run uses it), or what is wrong with it."""


async def up(names: Sequence[SiteName], copies: int, report: ReportLine) -> tuple[Running, ...]:
    """Starts copies until *copies* of each site run, and reports each start. Raises BadInput and ResetFailed."""
    for name in names:  # one after the other: a build uses a whole processor
        await build_golden(name, report)
    gate = asyncio.Semaphore(AT_ONCE)

    async def start(number: int, name: SiteName) -> None:
        folder = running_root() / str(number) / name
        async with gate:
            if (await _state(folder))[1] not in ("free", "held"):
                await _end(folder)
                copy = await start_copy(name, folder, detached=True)
                await copy.close()  # releases the lock; the server stays
                report(f"{KINDS[name].title} {number}: http://127.0.0.1:{copy.info.port}/")

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(1, copies + 1):
                for name in names:
                    group.create_task(start(number, name))
    except* ResetFailed as failed:
        raise ResetFailed(str(failed.exceptions[0])) from failed
    return await status()


async def status() -> tuple[Running, ...]:
    """All detached copies, ordered by number and site."""
    return tuple([row for folder in _folders() if (row := await _running(folder)) is not None])


async def down() -> int:
    """Ends all detached copies, also those that a run uses. Returns their number."""
    folders = _folders()
    for folder in folders:
        await _end(folder)
    await asyncio.to_thread(shutil.rmtree, running_root(), ignore_errors=True)
    return len(folders)


def _folders() -> list[Path]:
    order: list[str] = list(KINDS)
    folders = [path for path in running_root().glob("*/*") if path.name in KINDS and path.parent.name.isdigit()]
    return sorted(folders, key=lambda path: (int(path.parent.name), order.index(path.name)))


async def _running(folder: Path) -> Running | None:
    info, state = await _state(folder)
    if info is None:
        return None
    return Running(
        copy_number=int(folder.parent.name),
        site=next(name for name in KINDS if name == folder.name),
        url=f"http://127.0.0.1:{info.port}/",
        pid=info.pid,
        megabytes=round(memory_bytes(info.pid) / 1e6, 1),
        state=state,
    )


async def _state(folder: Path) -> tuple[ServerInfo | None, str]:
    try:
        info = ServerInfo.model_validate_json((folder / SERVER).read_bytes())
    except (OSError, ValueError):
        return None, "never started"
    try:
        reply = await ask(info.socket, "ping", PING_S)
    except ResetFailed:
        return info, "does not answer"
    if reply.problem:
        return info, reply.problem
    held = lease(folder)
    if held is None:
        return info, "held"
    os.close(held)
    return info, "free"


async def _end(folder: Path) -> None:
    """Asks the server of *folder* to stop, kills it if it does not, and removes the folder."""
    info, _ = await _state(folder)
    if info is not None:
        with contextlib.suppress(ResetFailed):
            await ask(info.socket, "stop", PING_S)
        if not await asyncio.to_thread(_ended, info.pid, folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(info.pid, signal.SIGKILL)
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _ended(pid: int, folder: Path) -> bool:
    """Waits for a stopping server; False if it still runs after END_S."""
    deadline = time.monotonic() + END_S
    while _serves(pid, folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not _serves(pid, folder)


def _serves(pid: int, folder: Path) -> bool:
    """Is this process the server of *folder*? Process ids are reused."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(folder) in arguments
