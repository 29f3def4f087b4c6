"""Stands between Playwright and Chromium so that no browser outlives the run that started it.

Runs as its own small program (standard library only)::

    python -IS chromium_guard.py OWNER OWNER_START HOME CHROMIUM [SWITCH …]

It forks a watchdog into a session of its own and then *becomes* Chromium (`exec`), so that pipes,
process id and process group are the ones Playwright made. The watchdog sleeps on two pidfds, the
owner's and Chromium's. Whichever ends first, by SIGKILL too, it kills Chromium's process group and
what else carries this browser's mark, removes the profile and HOME, and ends.

Guarantee: within about a second of the owner's end nothing of the browser is left, on disk or
running. The one trade-off accepted: Linux only (pidfd, /proc), which is where Mira runs.
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
"""Environment variable that every process of one browser inherits; its value is the browser's HOME folder."""
TRIES = 40
PAUSE_S = 0.05
STANDARD = (0, 1, 2)
FEATURES = ("--enable-features", "--disable-features")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def start_time(pid: int) -> str:
    """The kernel's start time of *pid*: with it a reused process id is not mistaken for its predecessor."""
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
    """The same, each list of features in one switch: of two, Chromium would obey only the last."""
    lists: dict[str, list[str]] = {}
    others: list[str] = []
    for switch in switches:
        name, equals, value = switch.partition("=")
        if equals and name in FEATURES:
            lists.setdefault(name, []).append(value)
        else:
            others.append(switch)
    return [*(f"{name}={','.join(values)}" for name, values in lists.items()), *others]


def _profile(switches: Sequence[str]) -> list[Path]:
    """The throw-away profile folder that Playwright made; a person's own profile is never ours to remove."""
    folders = [Path(s.partition("=")[2]) for s in switches if s.startswith("--user-data-dir=")]
    return [folder for folder in folders if folder.name.startswith("playwright_")]


def _watch(owner: int, chromium: int, group: int, doomed: Sequence[Path]) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in STANDARD:
        os.dup2(null, fd)
    _close_others({owner, chromium, *STANDARD})
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # a signal to "everything" must not end the one that cleans up
    select.select([owner, chromium], [], [])
    _kill(group, doomed[0])
    for folder in doomed:
        _remove(folder)


def _close_others(keep: set[int]) -> None:
    """Playwright's pipes are among them: held open here, it would never see Chromium end."""
    for fd in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        if fd not in keep:
            with suppress(OSError):  # the one that the listing itself used
                os.close(fd)


def _kill(group: int, home: Path) -> None:
    """Kills the process group, then, until none is found, every process that inherited the mark."""
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
    """Living processes, this one excepted, that belong to the browser whose HOME is *home*."""
    mark = f"{MARK}={home}".encode()
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and _carries(pid, mark)]


def _carries(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False  # gone, a zombie, or another user's


def _remove(folder: Path) -> None:
    """Removes *folder*; a dying process may still write for a moment, so it is tried a few times."""
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main(sys.argv[1:])
