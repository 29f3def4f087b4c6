"""What is left of a browser: its processes and folders, found by the browser's HOME."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

SOON_S = 8.0


class Living(NamedTuple):
    """A process, and the words of its command line when it was looked at: it may have ended since."""

    process: psutil.Process
    words: list[str]


def belonging(home: str) -> list[Living]:
    """Living processes that name *home* in their arguments or environment: the browser's, and its watchdog."""
    found: list[Living] = []
    for process in psutil.process_iter():
        try:
            words, environment = process.cmdline(), process.environ()
            alive = process.status() != psutil.STATUS_ZOMBIE
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        if alive and (home in words or home in environment.values()):
            found.append(Living(process, words))
    return found


def kill(living: Iterable[Living]) -> None:
    """Those that have not ended meanwhile, as the others of a browser do with its first."""
    for process, _ in living:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


async def all_gone(home: str, *others: Path) -> bool:
    """True once no process and no folder is left; False after SOON_S."""
    return await _soon(lambda: not belonging(home) and not _any_exists(Path(home), *others))


async def all_ended(name: str) -> bool:
    """True once no process is left that names *name*; False after SOON_S."""
    return await _soon(lambda: not belonging(name))


async def _soon(holds: Callable[[], bool]) -> bool:
    stop = time.monotonic() + SOON_S
    while not holds():
        if time.monotonic() > stop:
            return False
        await asyncio.sleep(0.05)
    return True


def _any_exists(*folders: Path) -> bool:
    return any(folder.exists() for folder in folders)
