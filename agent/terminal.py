"""Consoles that page text cannot steer.

Names, titles and messages of pages and models are printed as data: a character that a terminal could obey (an ANSI
escape, a carriage return, a bidirectional override) is replaced before it is written.
"""

from __future__ import annotations

import sys
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
            yield segment if harmless else Segment(_printable_lines(segment.text), segment.style)


def printable(text: str) -> str:
    """*text* on one line: white space is a blank, other control characters and what stdout cannot encode are replaced.

    One character stays one character.
    """
    clean = text if text.isprintable() else "".join(_printable(char) for char in text)
    encoding = sys.stdout.encoding or "utf-8"
    return clean.encode(encoding, "replace").decode(encoding)


def _printable(char: str) -> str:
    return char if char.isprintable() else " " if char.isspace() else "\ufffd"


def _printable_lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))
