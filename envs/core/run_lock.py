"""The lock of a run's folder: only one process at a time may play a run."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import weakref
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from envs.core.disk_errors import disk_refusal
from envs.core.errors import BadInput

LOCK_NAME = "lease"


class RunLocked(BadInput):
    """Another process holds the lock; the message names it."""


class RunLock:
    """An exclusive lock on a run's folder, until `release` or the end of this process.

    It uses `flock`: the kernel releases it when the owner dies, so no stale lock remains. A forked child does not share
    it. The lock file is never removed, because two processes could then lock two different files. Network file systems
    without `flock` are not supported.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK_NAME
        self._handle: int | None = None

    def acquire(self) -> Self:
        """Acquires the lock without waiting, or raises RunLocked. The folder must exist."""
        if self._handle is not None:
            return self
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise disk_refusal(error, self.path) or BadInput(f"cannot open {self.path}: {error.strerror}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = _owner(handle)
            os.close(handle)
            raise RunLocked(f"run {self.path.parent} is in use by {owner}; wait for it or stop it first") from None
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat("T", "seconds")}
        self._handle = handle
        _HELD.add(self)
        with suppress(OSError):  # a full disk may refuse the owner's name; the lock is valid without it
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(owner).encode(), 0)
        return self

    def release(self) -> None:
        """Releases the lock; a second call does nothing."""
        if self._handle is not None:
            with suppress(OSError):  # a failing disk may keep the name of the previous owner
                os.ftruncate(self._handle, 0)
            self.abandon()

    def abandon(self) -> None:
        """Closes this process's copy of the file handle and leaves the lock to others; used in a forked child."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
            _HELD.discard(self)

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


_HELD: weakref.WeakSet[RunLock] = weakref.WeakSet()


def _leave_to_parent() -> None:
    # The lock lasts until the last copy of its file handle is closed. A child that kept its copy would lock the run
    # after the owner's death. Closing a copy, unlike unlocking it, does not affect the parent.
    for lock in list(_HELD):
        lock.abandon()


os.register_at_fork(after_in_child=_leave_to_parent)


def _owner(handle: int) -> str:
    try:
        owner = json.loads(os.pread(handle, 4096, 0))
        return f"process {int(owner['pid'])} on {owner['host']} since {owner['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
