"""Prints results: tables for people on stdout, `--json` for programs, one line for errors on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from agent.cli.tables import FittedTable
from agent.cli.terminal import INTERRUPTED, OutputClosed, Terminal, printable

EXIT_OK = 0
EXIT_FAILED = 1
"""An open task failed or broke, or was not judged and not ended by the policy; or the browser did not start in time; or
the disk is full."""
EXIT_BAD_INPUT = 2
EXIT_IMPOSSIBLE = 3
"""The policy ended an open task with the answer `N/A`: it says that the task cannot be done."""
EXIT_INTERRUPTED = INTERRUPTED
"""Stopped by the user; `mira resume` continues."""

stdout = Terminal(soft_wrap=False)
stderr = Terminal(stderr=True)


def print_table(table: FittedTable) -> None:
    """Prints *table* on stdout, fitted to the terminal, or at full width with `--wide`."""
    stdout.print(table, crop=not stdout.wide)


def print_json(value: Any) -> None:
    """Prints one JSON value on stdout; all non-ASCII and control characters are escaped."""
    try:
        sys.stdout.write(json.dumps(value, ensure_ascii=True, indent=2) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise OutputClosed from None


def print_problem(message: str) -> None:
    """Prints *message* on stderr as one line."""
    line = printable(" ".join(message.split()))
    with suppress(BrokenPipeError):
        sys.stderr.write(f"mira: {line}\n")


@contextmanager
def counting(label: str, total: int, *, quiet: bool = False) -> Generator[Callable[[int], None]]:
    """Shows a progress bar of *total* items if stderr is a terminal; yields a function that sets the count done."""
    columns = (TextColumn("{task.completed}/{task.total} " + label), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True, disable=quiet or not stderr.is_terminal) as progress:
        task = progress.add_task(label, total=total)
        yield lambda done: progress.update(task, completed=done)
