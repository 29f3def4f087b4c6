"""Stands between Playwright and Chromium so that no browser outlives the run that started it.

Runs as its own small program (standard library only)::

    python -IS chromium_guard.py OWNER OWNER_START HOME CHROMIUM [SWITCH …]

It forks a watchdog into a session of its own and then *becomes* Chromium (`exec`), so that pipes,
process id and process group are the ones Playwright made. The watchdog sleeps on two pidfds, the
owner's and Chromium's. Whichever ends first, by SIGKILL too, it kills Chromium's process group and
what else carries this run's mark, removes the profile and HOME, and ends.

Guarantee: within about a second of the owner's end nothing of the browser is left, on disk or
running. The one trade-off accepted: Linux only (pidfd), which is where Mira runs.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time

MARK = "MIRA_CHROMIUM_HOME"
"""Environment variable that every process of one browser inherits."""


def start_time(pid: int) -> str:
    """The kernel's start time of *pid*: with it a reused process id cannot be mistaken for its predecessor."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[19]


def main(argv: list[str]) -> None:
    owner, owner_start, home, chromium, *switches = argv
    own = os.pidfd_open(os.getpid())
    try:
        watched = os.pidfd_open(int(owner))
        if start_time(int(owner)) != owner_start:
            raise ProcessLookupError(owner)
    except (ProcessLookupError, FileNotFoundError):
        sys.exit("chromium_guard: the owner has already ended")
    doomed = [home, *_profile(switches)]
    os.environ[MARK] = home
    os.environ["TMPDIR"] = os.path.join(home, "tmp")
    group = os.getpgrp()
    if os.fork() == 0:
        _watch(watched, own, group, doomed)
        os._exit(0)
    os.execv(chromium, [chromium, *switches])


def _profile(switches: list[str]) -> list[str]:
    """The throw-away profile folder Playwright made; a person's own profile is never ours to remove."""
    folders = [s.partition("=")[2] for s in switches if s.startswith("--user-data-dir=")]
    return [f for f in folders if os.path.basename(f).startswith("playwright_")]


def _watch(owner: int, chromium: int, group: int, doomed: list[str]) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    keep = {owner, chromium}
    for fd in range(3, 256):  # the pipes of Playwright: held open here, it would never see Chromium end
        if fd not in keep:
            try:
                os.close(fd)
            except OSError:
                continue
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a signal to "everything" must not end the one that cleans up
    select.select([owner, chromium], [], [])
    _kill(group, doomed[0])
    for folder in doomed:
        _remove(folder)


def _kill(group: int, home: str) -> None:
    """Kills the process group, then, until none is found, every process that inherited our mark."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # the group is gone already
    mark = f"{MARK}={home}".encode()
    for _ in range(20):
        left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _carries(pid, mark)]
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        time.sleep(0.05)


def _carries(pid: int, mark: bytes) -> bool:
    if pid == os.getpid():
        return False
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False  # gone, a zombie, or another user's


def _remove(folder: str) -> None:
    """Removes *folder*; a dying process may still write for a moment, so it is tried a few times."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1:])
