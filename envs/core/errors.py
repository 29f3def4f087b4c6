"""Errors of the environment room.

    EnvError
    ├── BadInput            wrong user input of any room (options, settings, files): one line, exit code 2
    ├── BrowserMissing      no Chromium can be found or started
    ├── BrowserNotStarted   it did not start in time: the machine is busy, the input is not wrong (exit code 1)
    ├── PageHung            the page did not answer within its bound and was closed
    ├── PageCrashed         the renderer died
    ├── ResetFailed         a task could not be brought to its first observation
    │   └── SessionNotOpened   because the browser was too busy
    ├── NotWritten          the disk did not take a file: full, over quota, failing (exit code 1, resumable)
    └── TraceError          a trace file cannot be read: names file, line and field

An action that cannot be done on a healthy page is *not* an error: it is an
:class:`envs.core.actions.ActionResult` with a typed status, which the agent can plan around.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

SAME_COMMAND: Final = "the same command"


class EnvError(Exception):
    """Base of everything this room raises on purpose."""


class BadInput(EnvError):
    """The one user-input error of all rooms: an option, a setting (an optimizer's, too) or a file that cannot be used.

    The message says in one line what is wrong and what to do; the CLI exits with 2.
    """


class BrowserMissing(BadInput):
    """No Chromium was found or it could not be started."""


class BrowserNotStarted(EnvError):
    """Chromium or its driver did not start in time, which says nothing of the input: the same command may do later."""


class PageHung(EnvError):
    """A call into the page passed its bound; the page was closed and replaced by a blank one."""


class PageCrashed(EnvError):
    """The renderer process died; the page was closed and replaced by a blank one."""


class ResetFailed(EnvError):
    """The task never reached a first observation: the episode is *broken*, not failed."""


class SessionNotOpened(ResetFailed):
    """The browser was too busy to open a session in time, which says nothing of the input."""


class NotWritten(EnvError):
    """The disk did not take what was written, which says nothing of the input; the message names the file."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why
        """One phrase: what the system says, and how much is free."""
        self.continue_with = SAME_COMMAND
        """What to do once there is room."""

    def __str__(self) -> str:
        return f"{self.path}: {self.why}; make room, then continue with: {self.continue_with}"


class TraceError(EnvError):
    """A trace that cannot be read; the message names file, line and field."""
