"""Consoles that page text cannot control.

Names, titles and messages of pages and models are data. Characters that control a terminal (ANSI escapes, carriage
returns, bidirectional overrides) are escaped or replaced before they are written.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

INTERRUPTED: Final = 130
"""Exit code of a command that was stopped from outside."""


class OutputClosed(SystemExit):
    """The program that read the output ended, such as `head`: the command ends, too, as if it was interrupted."""

    def __init__(self) -> None:
        drop_output()
        super().__init__(INTERRUPTED)


def drop_output() -> None:
    """Discards stdout's buffer, which cannot be written; else the interpreter reports an error when it exits."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Terminal(Console):
    """A rich console that replaces control characters in its output, and holds the value of `--wide`."""

    wide = False
    """Whether tables show every column at full width, whatever the terminal's width."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            harmless = segment.control or segment.text.isprintable() or segment.text == "\n"
            yield segment if harmless else Segment(_of_same_width(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Raises OutputClosed."""
        self.quiet = True
        raise OutputClosed


def printable(text: str) -> str:
    """*text* on one line, without characters that control a terminal.

    White space becomes a blank, control characters are escaped (`\\x1b`), format characters such as bidirectional marks
    are removed, and characters that the terminal cannot encode are escaped."""
    clean = text if text.isprintable() else "".join(map(_printable, text))
    encoding = sys.stdout.encoding or "utf-8"
    return clean.encode(encoding, "backslashreplace").decode(encoding)


def printable_lines(text: str) -> str:
    """Like `printable`, but keeps line breaks."""
    return "\n".join(printable(line) for line in text.splitlines())


def _printable(char: str) -> str:
    if char.isspace():
        return " "
    match unicodedata.category(char):
        case "Cf":
            return ""
        case "Cc" | "Cs":
            return char.encode("unicode_escape", "surrogatepass").decode("ascii")
        case _:  # private use, or newer than this Python: does not control a terminal
            return char


def _of_same_width(text: str) -> str:
    """*text* with one harmless character for each control character, so that the layout stays."""
    encoding = sys.stdout.encoding or "utf-8"
    return "".join(map(_replace_control, text)).encode(encoding, "replace").decode(encoding)


def _replace_control(char: str) -> str:
    if char.isprintable() or char == "\n":
        return char
    return " " if char.isspace() else "\ufffd"
