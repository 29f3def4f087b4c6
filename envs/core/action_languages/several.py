"""Several actions in one answer: the first, and those on the lines that follow it.

Only blank lines, comments and code fences may stand between two actions. Other text ends the list: it explains what was
done or what will be done later. The rest of an action's line is ignored, as it is after a single action.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from envs.core.action_languages.base import Parsed, notes_in

_SKIPPED = re.compile(r"[ \t]*(?:#[^\n]*|`{3,}[A-Za-z]*[ \t]*)?(?:\n|\Z)")
"""A line between two actions."""

Begin = Callable[[int], int | None]
"""Position of the action that the line at a position begins with; None where it begins with none."""
Read = Callable[[int], tuple[Parsed, int]]
"""Parses the action at a position, and returns the position after it. Raises ParseError."""


def following(text: str, position: int, begin: Begin, read: Read) -> Iterator[Parsed]:
    """The actions of *text* on the lines after *position*. Raises ParseError if one is malformed."""
    position = _next_line(text, position)
    since = position
    while position < len(text):
        if (start := begin(position)) is not None:
            parsed, end = read(start)
            yield replace(parsed, notes=notes_in(text[since:start]))
            position = since = _next_line(text, end)
        elif (skipped := _SKIPPED.match(text, position)) is not None:
            position = skipped.end()
        else:
            return


def _next_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1
