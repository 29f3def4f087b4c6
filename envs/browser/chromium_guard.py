"""Starts Chromium with a watchdog, so that no browser outlives the run that started it.

This file is a small program of its own (standard library only)::

    python -IS chromium_guard.py OWNER OWNER_START HOME CHROMIUM [SWITCH …]

It forks a watchdog into its own session and then replaces itself by Chromium (`exec`), which keeps Playwright's pipes,
process id and process group. The watchdog waits on the pidfds of the owner and of Chromium. When either ends, even by
SIGKILL, the watchdog kills Chromium's process group and all other processes with this browser's mark, removes the
profile and HOME, and exits.

Guarantee: about a second after the owner's end, no process or file of the browser remains. It requires Linux (pidfd,
/proc).
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

MARK = "MIRA_CHROMIUM_HOME"
"""Environment variable that all processes of a browser inherit; its value is the browser's HOME folder."""
TRIES = 40
PAUSE_S = 0.05
STANDARD = (0, 1, 2)
LISTS = ("--enable-features", "--disable-features", "--blink-settings")
"""Switches whose value is a list. Chromium uses only the last one of a name."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def start_time(pid: int) -> str:
    """Returns the kernel's start time of *pid*, which distinguishes a reused process id."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return stat.rpartition(")")[2].split()[19]


def main(argv: Sequence[str]) -> None:
    owner, owner_start, home, chromium, *switches = argv
    own = os.pidfd_open(os.getpid())
    try:
        watched = os.pidfd_open(int(owner))
        if start_time(int(owner)) != owner_start:
            raise ProcessLookupError(owner)
    except (ProcessLookupError, FileNotFoundError):
        sys.exit("chromium_guard: the owner has already ended")
    os.environ[MARK] = home
    os.environ["TMPDIR"] = f"{home}/tmp"
    group = os.getpgrp()
    if os.fork() == 0:
        _watch(watched, own, group, [Path(home), *_profile(switches)])
        os._exit(0)
    os.execv(chromium, [chromium, *joined(switches)])


def joined(switches: Sequence[str]) -> list[str]:
    """Merges repeated switches of :data:`LISTS`."""
    lists: dict[str, list[str]] = {}
    others: list[str] = []
    for switch in switches:
        name, equals, value = switch.partition("=")
        if equals and name in LISTS:
            lists.setdefault(name, []).append(value)
        else:
            others.append(switch)
    return [*(f"{name}={','.join(values)}" for name, values in lists.items()), *others]


def _profile(switches: Sequence[str]) -> list[Path]:
    """Returns Playwright's temporary profile folder, but never a user's own profile."""
    folders = [Path(s.partition("=")[2]) for s in switches if s.startswith("--user-data-dir=")]
    return [folder for folder in folders if folder.name.startswith("playwright_")]


def _watch(owner: int, chromium: int, group: int, doomed: Sequence[Path]) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in STANDARD:
        os.dup2(null, fd)
    _close_others({owner, chromium, *STANDARD})
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # a signal to all processes must not end the watchdog
    select.select([owner, chromium], [], [])
    _kill(group, doomed[0])
    for folder in doomed:
        _remove(folder)


def _close_others(keep: set[int]) -> None:
    """Closes all other file descriptors. With open copies of its pipes, Playwright would not notice Chromium's end."""
    for fd in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if fd not in keep:
            with suppress(OSError):  # the descriptor of the listing itself
                os.close(fd)


def _kill(group: int, home: Path) -> None:
    """Kills the process group, then repeatedly all processes with the mark until none is left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    for _ in range(TRIES):
        left = marked(home)
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_S)


def marked(home: Path) -> list[int]:
    """Returns the living processes of the browser with HOME *home*, except this one."""
    mark = f"{MARK}={home}".encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and _carries(pid, mark)]


def _carries(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False  # it has ended, is a zombie, or belongs to another user


def _remove(folder: Path) -> None:
    """Removes *folder*, with retries, because a dying process may still write to it."""
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(sys.argv[1:])
