"""The processes of Playwright's driver, through which a program controls its browsers.

Playwright reports that a browser ended, but not that its own driver did (killed for memory, for example): every call
then fails, and `is_connected` stays true.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from envs.browser.chromium_guard import marked


class DriverProcess:
    """A running driver, watched until `close`."""

    def __init__(self, pid: int) -> None:
        """Raises ProcessLookupError if it has ended."""
        self._handle = os.pidfd_open(pid)

    @property
    def ended(self) -> bool:
        """Whether the process has ended; true after `close`."""
        if self._handle < 0:
            return True
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Ends the watch; safe to call twice."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def drivers() -> Iterator[int]:
    """Yields the ids of the driver processes that this process started."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            if _parent(folder) == os.getpid() and b"run-driver" in (folder / "cmdline").read_bytes().split(b"\0"):
                yield int(folder.name)


def driver_of(home: Path) -> DriverProcess | None:
    """The driver that started the browser with the folder *home*; None if it cannot be found."""
    running = set(drivers())
    for pid in marked(home):
        with suppress(OSError):
            if (parent := _parent(Path(f"/proc/{pid}"))) in running:
                return DriverProcess(parent)
    return None


def _parent(folder: Path) -> int:
    """The parent of the process with this folder below /proc. Raises OSError if it has ended."""
    return int((folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
