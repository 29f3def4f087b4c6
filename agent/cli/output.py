"""How the command speaks: tables for people on stdout, `--json` for programs, one line for errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from agent.cli.tables import FittedTable
from agent.cli.terminal import Terminal, printable

EXIT_OK = 0
EXIT_FAILED = 1
"""One open task was run and it failed or broke, or nobody judged it and it was not the policy that ended it; or the
browser did not start in time; or the disk did not take what was to be written."""
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
"""Stopped by the user; `mira resume` goes on."""

stdout = Terminal(soft_wrap=False)
stderr = Terminal(stderr=True)


def print_table(table: FittedTable) -> None:
    """*table* on stdout, as wide as the terminal; with `--wide` as wide as it is."""
    stdout.print(table, crop=not stdout.wide)


def print_json(value: Any) -> None:
    """One JSON value on stdout, nothing else; characters that a terminal could obey are escaped."""
    sys.stdout.write(json.dumps(value, ensure_ascii=True, indent=2) + "\n")
    sys.stdout.flush()


def print_problem(message: str) -> None:
    """The one line that says what is wrong and what to do."""
    line = printable(" ".join(message.split()))
    sys.stderr.write(f"mira: {line}\n")


@contextmanager
def counting(what: str, total: int, *, quiet: bool = False) -> Generator[Callable[[int], None]]:
    """Shows how many of *total* are done on stderr, where a person looks; silent with *quiet*."""
    columns = (TextColumn("{task.completed}/{task.total} " + what), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True, disable=quiet or not stderr.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)
