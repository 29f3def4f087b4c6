"""Consoles that page text cannot steer.

Names, titles and messages of pages and models are printed as data: a character that a terminal could obey (an ANSI
escape, a carriage return, a bidirectional override) is escaped or replaced before it is written.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment


class Terminal(Console):
    """A rich console that replaces control characters in whatever is printed on it, and knows `--wide`."""

    wide = False
    """True: tables have every column, at its full width, whatever the width of the terminal is."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            harmless = segment.control or segment.text.isprintable() or segment.text == "\n"
            yield segment if harmless else Segment(_of_same_width(segment.text), segment.style)


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


def _of_same_width(text: str) -> str:
    """*text*, already laid out, with one character for each that a terminal could obey."""
    encoding = sys.stdout.encoding or "utf-8"
    return "".join(map(_one, text)).encode(encoding, "replace").decode(encoding)


def _one(char: str) -> str:
    if char.isprintable() or char == "\n":
        return char
    return " " if char.isspace() else "\ufffd"
