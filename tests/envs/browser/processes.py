"""Finds the remaining processes and folders of a browser by its HOME."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.timing import until_async


class Living(NamedTuple):
    """A process with its command line; it may have ended since."""

    process: psutil.Process
    words: list[str]


def belonging(home: str) -> list[Living]:
    """Living processes with *home* in their arguments or environment: the browser and its watchdog."""
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
    """Filters the processes that have not ended meanwhile."""
    for process, _ in living:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


async def all_gone(home: str, *others: Path) -> bool:
    """Waits until no process and no folder is left; False if that hangs."""
    return await until_async(lambda: not belonging(home) and not _any_exists(Path(home), *others))


async def all_ended(name: str) -> bool:
    """Waits until no process with *name* is left; False if that hangs."""
    return await until_async(lambda: not belonging(name))


def _any_exists(*folders: Path) -> bool:
    return any(folder.exists() for folder in folders)
