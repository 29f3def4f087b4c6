"""The lines of a page text taken apart along the grammar of :mod:`envs.core.observation`, and cut without breaking it.

Pure functions. A cut line holds whole pieces of the line it was made of, in their order: a control with its value and
states, a cell, an option, a few words of a long text. Nothing is reworded, so a ref or a name that is shown stands on
the page just so; only a long value of a field may lose its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["heading", "field", "button", "link", "clickable", "row", "text", "marker"]

CUT: Final = "…"
"""Stands where pieces of a line were left out."""
VALUE_CHARS = 60
"""Longest value of a field on a line that is cut."""
WORDS_CHARS = 80
"""Longest piece that plain text is divided into."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_CONTROL = re.compile(rf"(?<!\\)\[\d+\] (\w+) {_STRING}(?: = (?P<value>{_STRING}))?(?: (?!options:)[a-z]+\b)*")
_OPTIONS = re.compile(rf"(?: options:)?(?: {_STRING})(?: \(disabled\))?")
_OPTION = re.compile(_STRING)
_WORDS = re.compile(rf"\S(?:.{{0,{WORDS_CHARS - 2}}}\S)?(?=\s|$)|\S+")
_FILLED = frozenset(("textbox", "searchbox", "combobox", "listbox", "spinbutton", "slider"))
_FIELDS = _FILLED | {"checkbox", "radio", "switch"}
_BUTTONS = frozenset(("button", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "treeitem"))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the page."""

    text: str
    kind: Kind
    roles: tuple[str, ...]
    focused: bool
    is_idle: bool
    """It has controls, and none of them can be acted on: all are disabled or readonly."""

    @property
    def is_row(self) -> bool:
        """Of a table, or of a form that is laid out as one."""
        return " | " in self.text

    @property
    def has_field(self) -> bool:
        return bool(_FIELDS.intersection(self.roles))

    @property
    def shape(self) -> str:
        """Equal for lines that are built alike, such as the rows of a table or the entries of a menu."""
        return f"{self.kind} {' '.join(self.roles)} {self.text.count(' | ')}"


def read_line(text: str) -> Line:
    """Any text gives a line."""
    controls = list(_CONTROL.finditer(text))
    roles = tuple(control[1] for control in controls)
    states = [frozenset(_OPTION.sub("", control[0]).split()) for control in controls]
    focused = any("focused" in one for one in states)
    idle = bool(states) and all(one & {"disabled", "readonly"} for one in states)
    return Line(text, _kind(text, frozenset(roles)), roles, focused, idle)


def _kind(text: str, roles: frozenset[str]) -> Kind:
    if text.startswith(("--- frame ", "--- end frame ", "… g")):
        return "marker"
    if text.startswith("# "):
        return "heading"
    if " | " in text and not _FILLED & roles:
        return "row"
    if not roles:
        return "text"
    return "field" if _FIELDS & roles else "button" if _BUTTONS & roles else "link" if "link" in roles else "clickable"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line that is shown whole or not at all."""

    before: str
    """What stands between it and the piece before it, if any: blanks, ` | `, ` options: `."""
    text: str
    is_control: bool = False
    cell: int = 0
    """0-based number of the cell that it stands in."""


def pieces(text: str) -> list[Piece]:
    """The parts of a line, in order; each after what stands before it, they give the line again."""
    found: list[Piece] = []
    end = cell = 0
    for start, stop, is_control in (*_spans(text), (len(text), len(text), False)):
        for first, last in _texts(text, end, start):
            cell += text.count(" | ", end, first)
            found.append(Piece(text[end:first], text[first:last], cell=cell))
            end = last
        if stop > start:
            cell += text.count(" | ", end, start)
            found.append(Piece(text[end:start], text[start:stop], is_control, cell))
            end = stop
    return found


def _spans(text: str) -> list[tuple[int, int, bool]]:
    """Where controls and options stand, and which of the two each is."""
    spans: list[tuple[int, int, bool]] = []
    for control in _CONTROL.finditer(text):
        spans.append((control.start(), control.end(), True))
        end = control.end()
        if not text.startswith(" options:", end):
            continue
        while option := _OPTIONS.match(text, end):
            end = option.end()
            spans.append((text.index('"', option.start()), end, False))
    return spans


def _texts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The words between two spans, cell by cell, long ones in parts."""
    found: list[tuple[int, int]] = []
    for cell in re.finditer(r"(?:(?! \| ).)+", text[start:end]):
        if cell[0].strip(" |") and cell[0].strip() != "options:":
            found += [
                (start + cell.start() + m.start(), start + cell.start() + m.end()) for m in _WORDS.finditer(cell[0])
            ]
    return found


def cut_line(text: str, room: int, worth: Callable[[Piece], float]) -> str:
    """*text*, where it is longer than *room* characters without the pieces that are worth least, marked with `…`.

    Long values of fields are cut first, as the observer cuts longer ones: they keep their beginning.
    At least one piece stays, so that a line whose only control is long may remain longer than *room*.
    """
    if len(text) <= room:
        return text
    text = _CONTROL.sub(_with_short_value, text)
    if len(text) <= room:
        return text
    parts = pieces(text)
    ranked = sorted(range(len(parts)), key=lambda i: (-worth(parts[i]), i))
    kept: set[int] = set()
    for index in ranked:
        if not kept or len(_joined(parts, kept | {index})) <= room:
            kept.add(index)
    return _joined(parts, kept)


def _with_short_value(control: re.Match[str]) -> str:
    value = control["value"]
    if value is None or len(value) <= VALUE_CHARS:
        return control[0]
    start, end = (at - control.start() for at in control.span("value"))
    begin = value[: VALUE_CHARS - 1]
    begin = begin[: len(begin) - (len(begin) - len(begin.rstrip("\\"))) % 2]  # not in the middle of an escape
    return f'{control[0][:start]}{begin}{CUT}"{control[0][end:]}'


def _joined(parts: list[Piece], kept: set[int]) -> str:
    shown: list[str] = []
    skipped = ""
    """What stood before the pieces that were left out since the last one shown."""
    for index, part in enumerate(parts):
        if index not in kept:
            skipped += part.before if skipped else part.before or " "
        elif skipped:
            bar = " | " if "|" in skipped + part.before else " "
            head = " options:" if " options:" in skipped + part.before else ""
            mark = f"{head}{bar if not head else ' '}{CUT}{bar}"
            shown += [mark if shown else mark.lstrip(" |"), part.text]
            skipped = ""
        else:
            shown += [part.before, part.text]
    if skipped:
        shown.append(f" {CUT}")
    return _GROUP_MARK.sub(r"\\" + CUT, "".join(shown))


_GROUP_MARK = re.compile(rf"(?<!\\){CUT}(?=\s*g\d)")
"""Words of the page that come to stand after our `…` must not read as the marker of a group."""
