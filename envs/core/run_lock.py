"""One owner per run: two processes on one run would both act on the world."""

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
    """The run belongs to a living process, which the message names."""


class RunLock:
    """An exclusive hold on a run's folder, for as long as this process lives or until `release`.

    It rests on `flock`, so the kernel frees it when the owner dies, however it dies; there is no stale lease. A
    forked child does not share it. The lock file stays: removing it would let two owners lock two files.
    Not promised on network file systems without `flock`.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK_NAME
        self._handle: int | None = None

    def acquire(self) -> Self:
        """Takes the lease at once or raises RunLocked; never waits. The folder must exist."""
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
        with suppress(OSError):  # the lock holds without its owner's name, which a full disk does not take
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(owner).encode(), 0)
        return self

    def release(self) -> None:
        """Gives the lease back; a second call does nothing."""
        if self._handle is not None:
            with suppress(OSError):  # a disk that fails keeps the name of an owner that is gone
                os.ftruncate(self._handle, 0)
            self.abandon()

    def abandon(self) -> None:
        """Closes this process's copy of the lock without a word to others: what a forked child does."""
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
    # A lock lives until the last copy of its file handle is closed: a child that kept its copy would hold the
    # run after the owner's death. Closing a copy (unlike unlocking it) takes nothing from the parent.
    for lease in list(_HELD):
        lease.abandon()


os.register_at_fork(after_in_child=_leave_to_parent)


def _owner(handle: int) -> str:
    try:
        owner = json.loads(os.pread(handle, 4096, 0))
        return f"process {int(owner['pid'])} on {owner['host']} since {owner['since']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
