"""Lines of an answer that change the policy's notes; equal in both action languages.

    # Note: order 17 was paid by Ana         adds a note
    # Note 2: order 18 is open               replaces note 2
    # Forget note 2                          removes it

Comment lines fit every provider and parser: a parser of actions ignores them. Lines within a thought do not count, nor
lines of a text that the action types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from envs.core.action_languages.base import without_thoughts
from envs.core.actions import Action
from envs.core.notes import NoteEdit

NOTE_SYNTAX: Final = "# Note: text"
CHANGE_SYNTAX: Final = "`# Note NUMBER: text` replaces one, `# Forget note NUMBER` removes one"
"""How notes that exist are changed."""

_LINE: Final = re.compile(
    r"^[ \t>*`-]*#+[ \t]*(?:(?P<forget>(?:forget|remove|delete)[ \t]+note)|note)"
    r"[ \t]*[#\[]?(?P<number>\d{1,4})?\]?[ \t]*(?P<colon>:)?(?P<text>[^\r\n]*)$",
    re.MULTILINE | re.IGNORECASE,
)


def note_edits(text: str, *actions: Action) -> tuple[NoteEdit, ...]:
    """Returns the changes of notes in the answer *text*, in order, each once. *actions* were parsed from it."""
    texts = [value for action in actions for _, value in action if isinstance(value, str)]
    typed = tuple(_folded(line) for text in texts for line in text.splitlines() if _LINE.fullmatch(line))
    return tuple(dict.fromkeys(_edits(without_thoughts(text), typed)))


def _edits(text: str, typed: tuple[str, ...]) -> Iterator[NoteEdit]:
    """The changes on the lines of *text*; a line that begins with one of *typed* is text that the action types."""
    for match in _LINE.finditer(text):
        if typed and _folded(match[0]).startswith(typed):
            continue
        number = int(match["number"]) if match["number"] else None
        if match["forget"] and number is not None:
            yield NoteEdit(number, "")
        elif match["colon"] and not match["forget"]:
            note = match["text"].strip().rstrip("`").rstrip()
            if note or number is not None:
                yield NoteEdit(number, note)


def _folded(text: str) -> str:
    return " ".join(text.split())
