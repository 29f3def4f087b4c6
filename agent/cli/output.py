"""How the command speaks: tables for people on stdout, `--json` for programs, one line for errors."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

EXIT_OK = 0
EXIT_FAILED = 1
"""One open task was run and it failed or broke, or nobody judged it and it was not the policy that ended it; or the
browser did not start in time."""
EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
"""Stopped by the user; `mira resume` goes on."""

stdout = Console(soft_wrap=False)
stderr = Console(stderr=True)


def print_json(value: Any) -> None:
    """One JSON value on stdout, nothing else; characters that a terminal could obey are escaped."""
    sys.stdout.write(json.dumps(value, ensure_ascii=True, indent=2) + "\n")
    sys.stdout.flush()


def printable(text: str) -> str:
    """*text* on one line, without characters that a terminal could obey, each as what it stands for: white space of
    every kind is a blank, control characters are escaped (`\\x1b`), marks of direction and the like are left out, and
    what the terminal cannot encode is escaped."""
    clean = text if text.isprintable() else "".join(map(_printable, text))
    encoding = sys.stdout.encoding or "utf-8"
    return clean.encode(encoding, "backslashreplace").decode(encoding)


def printable_lines(text: str) -> str:
    """As `printable`, with the line breaks of *text* kept."""
    return "\n".join(printable(line) for line in text.splitlines())


def _printable(char: str) -> str:
    if char.isspace():
        return " "
    match unicodedata.category(char):
        case "Cf":
            return ""
        case "Cc" | "Cs":
            return char.encode("unicode_escape", "surrogatepass").decode("ascii")
        case _:  # of private use, or newer than this Python: nothing that a terminal could obey
            return char


def print_problem(message: str) -> None:
    """The one line that says what is wrong and what to do."""
    line = " ".join(message.split())
    sys.stderr.write(f"mira: {line}\n")


@contextmanager
def counting(what: str, total: int, *, quiet: bool = False) -> Generator[Callable[[int], None]]:
    """Shows how many of *total* are done on stderr, where a person looks; silent with *quiet*."""
    columns = (TextColumn("{task.completed}/{task.total} " + what), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True, disable=quiet or not stderr.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)
