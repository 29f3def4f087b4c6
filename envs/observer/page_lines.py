"""Parses and shortens lines of page text by the grammar of :mod:`envs.core.observation`.

Pure functions. A shortened line contains complete pieces of the original line in their order: a control with its value
and states, a cell, an option, or a few words of a long text. Refs and names are never changed; only a long value of a
field may lose its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["heading", "field", "button", "link", "clickable", "row", "text", "marker"]

CUT: Final = "…"
"""Marks omitted pieces of a line."""
VALUE_CHARS = 60
"""Longest value of a field on a shortened line."""
WORDS_CHARS = 80
"""Longest piece of plain text."""
AREA_CHARS = 16
"""Longest name of a clickable area whose words follow."""
AREA_WORDS = 3
"""Fewest words of a name that is worth shortening."""
AREA_LINES = 8
"""Most lines that hold the words of a clickable area."""

_STRING = r'"(?:[^"\\]|\\.)*"'
_CUE = (
    r"(?:checked|unchecked|selected|current|pressed|on|off|expanded|collapsed|disabled|changed|liked|starred|favorited|"
    r"favourited|bookmarked|pinned|followed|subscribed|muted|icon:[a-z-]{3,30})\??"
)
"""The cues of `envs/observer/in_page/states.js`."""
_CUES = rf"(?: \({_CUE}(?: {_CUE})*\)(?= |$))?"
_CUED = re.compile(
    rf"((?<!\\)\[\d+\] [\w:-]+ {_STRING}(?: = {_STRING})?(?: (?!options:|title \")[a-z-]+\b)*){_CUES}", re.MULTILINE
)
_CONTROL = re.compile(
    rf"(?<!\\)\[\d+\] (\w+) (?P<name>{_STRING})(?: = (?P<value>{_STRING}))?"
    rf"(?: (?!options:|title \")[a-z-]+\b)*{_CUES}(?: title {_STRING})?"
)
_OPTIONS = re.compile(rf"(?: options:)?(?: {_STRING})(?: \(disabled\))?")
_OPTION = re.compile(_STRING)
_WORDS = re.compile(rf"\S(?:.{{0,{WORDS_CHARS - 2}}}\S)?(?=\s|$)|\S+")
_REF = re.compile(r"(?<!\\)\[\d+\] ")
_AREA = re.compile(rf"(?<!\\)(\[\d+\] )clickable (?P<name>{_STRING})")
_WORD = re.compile(r"\w+|[^\w\s]")
_FILLED = frozenset(("textbox", "searchbox", "combobox", "listbox", "spinbutton", "slider"))
_FIELDS = _FILLED | {"checkbox", "radio", "switch"}
_BUTTONS = frozenset(("button", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "treeitem"))
CONTROL_ROLES: Final = _FIELDS | _BUTTONS | {"link", "clickable"}
"""The common roles of controls."""


def without_cues(text: str) -> str:
    """Removes the cues of all controls, see :attr:`envs.core.observation.Element.cues`. Small models are not trained on
    them."""
    return _CUED.sub(r"\1", text)


def without_refs(text: str) -> str:
    """Removes the numbers of controls, for readers that choose none of them. `\\[3]` is text of the page and stays."""
    return _REF.sub("", text)


def without_repeated_areas(text: str) -> str:
    """Removes the lines of clickable areas whose words the lines after them show, for readers without actions."""
    lines = text.split("\n")
    repeated = frozenset(_repeated_areas(lines))
    return "\n".join(line for index, line in enumerate(lines) if index not in repeated)


def with_short_areas(text: str) -> str:
    """Cuts the name of each clickable area whose words the lines after it show to its first `AREA_CHARS` characters."""
    lines = text.split("\n")
    for index in _repeated_areas(lines):
        lines[index] = _AREA.sub(_with_short_name, lines[index])
    return "\n".join(lines)


def _repeated_areas(lines: Sequence[str]) -> Iterator[int]:
    """Indexes of the lines with a clickable area and nothing else, whose name is the beginning of the text after it.

    The name of a clickable row is its text, and its parts are shown once more as controls of their own.
    """
    for index, line in enumerate(lines):
        area = _AREA.fullmatch(line)
        if area is None:
            continue
        name = _WORD.findall(area["name"][1:-1].removesuffix(CUT))
        following = "".join(word for part in lines[index + 1 : index + 1 + AREA_LINES] for word in _words_of(part))
        if len(name) >= AREA_WORDS and following.startswith("".join(name)):
            yield index


def _words_of(line: str) -> list[str]:
    """The words of *line* in which each control stands for its name."""
    return _WORD.findall(_CONTROL.sub(lambda control: control["name"][1:-1], line.removeprefix("# ")))


def _with_short_name(area: re.Match[str]) -> str:
    name = area["name"]
    return area[0] if len(name) - 2 <= AREA_CHARS else f"{area[1]}clickable {_cut_string(name, AREA_CHARS)}"


def _cut_string(quoted: str, chars: int) -> str:
    """The first *chars* characters of a *quoted* string and `…`, not cut in the middle of an escape."""
    begin = quoted[: chars + 1]
    backslashes = len(begin) - len(begin.rstrip("\\"))
    return f'{begin[: len(begin) - backslashes % 2]}{CUT}"'


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the page."""

    text: str
    kind: Kind
    roles: tuple[str, ...]
    focused: bool
    is_idle: bool
    """Whether it has controls and all of them are disabled or readonly."""

    @property
    def is_row(self) -> bool:
        """Whether it is a row of a table, or of a form in a table layout."""
        return " | " in self.text

    @property
    def has_field(self) -> bool:
        return bool(_FIELDS.intersection(self.roles))

    @property
    def shape(self) -> str:
        """A signature that is equal for lines of the same structure, such as table rows or menu entries."""
        return f"{self.kind} {' '.join(self.roles)} {self.text.count(' | ')}"


def read_line(text: str) -> Line:
    """Parses a line; accepts any text."""
    controls = list(_CONTROL.finditer(text))
    roles = tuple(control[1] for control in controls)
    states = [frozenset(_OPTION.sub("", control[0]).split()) for control in controls]
    focused = any("focused" in state_set for state_set in states)
    idle = bool(states) and all(state_set & {"disabled", "readonly"} for state_set in states)
    return Line(text, _kind(text, frozenset(roles)), roles, focused, idle)


def _kind(text: str, roles: frozenset[str]) -> Kind:
    if text.startswith(("--- frame ", "--- end frame ", "--- behind the dialog: ", "… g")):
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
    """A part of a line that is shown completely or not at all."""

    before: str
    """The text between the previous piece and this one: blanks, ` | ` or ` options: `."""
    text: str
    is_control: bool = False
    cell: int = 0
    """0-based number of its cell."""


def pieces(text: str) -> list[Piece]:
    """Splits a line into pieces, which with their `before` texts concatenate to the line."""
    parts: list[Piece] = []
    end = cell = 0
    for start, stop, is_control in (*_spans(text), (len(text), len(text), False)):
        for first, last in _texts(text, end, start):
            cell += text.count(" | ", end, first)
            parts.append(Piece(text[end:first], text[first:last], cell=cell))
            end = last
        if stop > start:
            cell += text.count(" | ", end, start)
            parts.append(Piece(text[end:start], text[start:stop], is_control, cell))
            end = stop
    return parts


def _spans(text: str) -> list[tuple[int, int, bool]]:
    """Returns start, end and whether it is a control, for all controls and options."""
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
    """Returns the spans of the plain text between two controls or options, by cell; long texts are divided."""
    spans: list[tuple[int, int]] = []
    for cell in re.finditer(r"(?:(?! \| ).)+", text[start:end]):
        if cell[0].strip(" |") and cell[0].strip() != "options:":
            spans += [
                (start + cell.start() + m.start(), start + cell.start() + m.end()) for m in _WORDS.finditer(cell[0])
            ]
    return spans


def cut_line(text: str, room: int, worth: Callable[[Piece], float]) -> str:
    """Shortens *text* to *room* characters by omitting the pieces with the least *worth*; `…` marks the gaps.

    Long values of fields are cut first and keep their beginning. At least one piece stays, so a line with a single long
    control may remain longer than *room*.
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
    return f"{control[0][:start]}{_cut_string(value, VALUE_CHARS - 2)}{control[0][end:]}"


def _joined(parts: list[Piece], kept: set[int]) -> str:
    shown: list[str] = []
    skipped = ""
    """The `before` texts of the pieces that were omitted since the last one shown."""
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
"""Page text after an inserted `…` must not look like a group marker."""
