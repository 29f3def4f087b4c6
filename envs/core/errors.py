"""Errors of the environment package.

    EnvError
    ├── BadInput               invalid user input: a one-line message, exit code 2
    │   └── BrowserMissing     no Chromium was found, or it cannot be started
    ├── BrowserNotStarted      the start timed out: the machine is busy, the input is valid (exit code 1)
    ├── PageHung               the page did not answer in time and was closed
    ├── PageCrashed            the renderer process died
    ├── BrowserDied            the browser ended, and its pages with it
    ├── ResetFailed            a task did not reach its first observation
    │   └── SessionNotOpened   the browser was too busy to open a session
    ├── NotWritten             the disk refused a write: full, over quota, failing (exit code 1, resumable)
    └── TraceError             a trace file cannot be read: names file, line and field

An action that fails on a working page is *not* an error: its :class:`envs.core.actions.ActionResult` has a typed
status and reason, to which the agent can react.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

SAME_COMMAND: Final = "the same command"


class EnvError(Exception):
    """Base class of all errors that this package raises."""


class BadInput(EnvError):
    """Invalid user input, the one such error of all packages: an option, a setting (an optimizer's, too) or a file.

    The message says in one line what is wrong and what to do; the CLI exits with 2.
    """


class BrowserMissing(BadInput):
    """No Chromium was found or it could not be started."""


class BrowserNotStarted(EnvError):
    """Chromium or its driver did not start in time. The input is valid: a retry may succeed."""


class PageHung(EnvError):
    """A call into the page timed out; the page was closed and replaced by a blank one."""


class PageCrashed(EnvError):
    """The renderer process died; the page was closed and replaced by a blank one."""


class BrowserDied(EnvError):
    """The browser or its driver ended: the session cannot be used again."""


class ResetFailed(EnvError):
    """The task did not reach its first observation: the episode is *broken*, not failed."""


class SessionNotOpened(ResetFailed):
    """The browser was too busy to open a session in time. The input is valid."""


class NotWritten(EnvError):
    """The disk refused a write; the message names the file. The input is valid."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why
        """The system's message and the free space, in one phrase."""
        self.continue_with = SAME_COMMAND
        """The command that continues the run once there is space."""

    def __str__(self) -> str:
        return f"{self.path}: {self.why}; make room, then continue with: {self.continue_with}"


class TraceError(EnvError):
    """A trace that cannot be read; the message names file, line and field."""


def listed(items: Sequence[object], most: int = 5) -> str:
    """Joins the first *most* of *items* for a message and counts the others: `a, b and 3 more`."""
    shown = ", ".join(map(str, items[:most]))
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
