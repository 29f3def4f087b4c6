"""Notes that the policy keeps for itself: facts of a page that it needs after leaving it.

A note is written as a comment line of an answer (:mod:`envs.core.action_languages.note_lines`). It keeps its number
until it is removed. Notes are the policy's words and may copy page text, so a prompt shows them as data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from envs.core.record import Record

NOTE_CHARS: Final = 400
"""Longest note; a longer one is cut, which is said."""
_QUOTED_CHARS: Final = 120
"""Characters of a note that a remark quotes."""


@dataclass(frozen=True, slots=True)
class NoteEdit:
    """One change of the notes that an answer asks for."""

    number: int | None
    """The note to write or to remove; None adds a note under the lowest free number."""
    text: str
    """Empty removes the note."""


class Note(Record):
    number: int
    """From 1."""
    text: str
    """One line of at most :data:`NOTE_CHARS` characters, secrets masked."""


class Notebook(Record):
    """The notes after an answer."""

    notes: tuple[Note, ...] = ()
    """By number."""
    remarks: tuple[str, ...] = ()
    """What the last answer's changes cut, replaced or could not keep; shown once, at the next turn."""

    def read(self) -> Notebook:
        """The same notes without the remarks."""
        return Notebook(notes=self.notes) if self.remarks else self


def edited(
    notes: Iterable[Note], edits: Iterable[NoteEdit], most: int, mask: Callable[[str], str] = lambda text: text
) -> Notebook:
    """Returns *notes* after *edits*, at most *most* of them. Nothing is lost without a remark.

    *mask* is applied before a note is cut: a part of a secret's value could not be recognised later.
    """
    texts = {note.number: note.text for note in notes}
    remarks: list[str] = []
    for edit in edits:
        remarks += _edit(texts, edit, " ".join(mask(edit.text).split()), most)
    return Notebook(notes=tuple(Note(number=n, text=texts[n]) for n in sorted(texts)), remarks=tuple(remarks))


def edits_between(before: Iterable[Note], after: Iterable[Note]) -> tuple[NoteEdit, ...]:
    """Returns the changes that make the notes *after* of the notes *before*."""
    old, new = ({note.number: note.text for note in notes} for notes in (before, after))
    gone = [NoteEdit(number, "") for number, text in old.items() if new.get(number) != text]
    return (*gone, *(NoteEdit(number, text) for number, text in new.items() if old.get(number) != text))


def _edit(texts: dict[int, str], edit: NoteEdit, text: str, most: int) -> list[str]:
    """Changes *texts*; returns remarks."""
    if not text:
        return _removed(texts, edit.number)
    kept = text if len(text) <= NOTE_CHARS else text[: NOTE_CHARS - 1] + "…"
    if kept in texts.values():
        return []
    free = next(n for n in range(1, len(texts) + 2) if n not in texts)
    number = edit.number if edit.number in texts or edit.number in range(1, most + 1) else free
    assert number is not None
    old = texts.get(number)
    if old is None and len(texts) >= most:
        return [
            f"not kept, for there are {len(texts)} notes and no more than {most} are kept; "
            f"replace or remove one: {_short(text)}"
        ]
    texts[number] = kept
    replaced = [] if old is None else [f"note {number} was replaced; it said: {_short(old)}"]
    was_cut = [] if kept == text else [f"note {number} was cut at {NOTE_CHARS} characters"]
    return replaced + was_cut


def _removed(texts: dict[int, str], number: int | None) -> list[str]:
    if number is None:
        return []
    return [] if texts.pop(number, None) is not None else [f"there is no note {number} to remove"]


def _short(text: str) -> str:
    return text if len(text) <= _QUOTED_CHARS else text[: _QUOTED_CHARS - 1] + "…"
