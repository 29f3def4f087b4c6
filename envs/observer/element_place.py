"""Says which element an action named, where its name is empty or not unique: by its row, heading or neighbours.

Pure functions over an observation: its text has one line per block of the page, and the cells of a table's row on one
line. Of several descriptions the first counts that no other element with the same role and name shares. Every text is
bounded, and secrets are masked before a text is cut, so that no part of a value remains.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from envs.core.action_place import ActionPlace
from envs.core.actions import Action, ClickAt, Drag, DragAt, ScrollAt
from envs.core.observation import Element, Observation
from envs.observer.page_lines import pieces

TEXT_CHARS: Final = 80
"""Longest text of a row, heading or neighbour."""
NAME_CHARS: Final = 80
NEIGHBOURS: Final = 3
"""Lines above a single element without a name that describe it."""
BLOCK: Final = 8
"""Most lines above an element that describe it, up to the element of the same name before it."""
NEAR: Final = 15
"""Elements with the same role and name, on each side, whose descriptions are compared. Those beyond are only searched
for the same row."""

Mask = Callable[[str], str]

_CONTROL: Final = re.compile(r'\[(\d+)\] ([\w-]+) "((?:[^"\\]|\\.)*)"')
_MARK: Final = re.compile(r"(?<!\\)\[(\d+)\] [\w-]+ \"")
_HEADING: Final = "# "
_MARKS: Final = re.compile(r'\[\d+\] [\w-]+|[|"\\]')
_MARKER: Final = re.compile(r'--- (?:end )?frame \d+(?: "(?P<title>(?:[^"\\]|\\.)*)")?')
_CELL: Final = " · "


def action_place(action: Action, observation: Observation, mask: Mask) -> ActionPlace | None:
    """Returns what role and name of the action's element do not say about it; None where they say all."""
    page = _Page(observation, mask)
    ref, to_ref = (getattr(action, name, None) for name in ("ref", "to_ref"))
    where = page.where(ref) if isinstance(ref, int) else ""
    onto = page.named(to_ref) if isinstance(action, Drag) and isinstance(to_ref, int) else ""
    at = ""
    if isinstance(action, ClickAt | ScrollAt | DragAt):
        at = page.lies_at(action.x, action.y)
    if isinstance(action, DragAt):
        onto = page.lies_at(action.to_x, action.to_y)
    return ActionPlace(where=where, at=at, onto=onto) if where or at or onto else None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A control or a text on a line."""

    text: str
    """The control's name, or the text; empty for a control without a name of its own."""
    cell: int
    ref: int | None = None


class _Page:
    """An observation, with its lines by element."""

    def __init__(self, observation: Observation, mask: Mask) -> None:
        self._observation = observation
        self._mask = mask
        self._rows: dict[int, list[_Piece]] = {}
        """The pieces of the lines that were read."""

    @cached_property
    def _lines(self) -> list[str]:
        return self._observation.text.split("\n")

    @cached_property
    def _line_of(self) -> dict[int, int]:
        places: dict[int, int] = {}
        for number, line in enumerate(self._lines):
            for mark in _MARK.finditer(line):
                places.setdefault(int(mark[1]), number)
        return places

    @cached_property
    def _names(self) -> Counter[tuple[str, str]]:
        return Counter((element.key.role, element.key.name) for element in self._observation.elements)

    def named(self, ref: int) -> str:
        """The element in words, e.g. `button "delete" in row "Invoice 17"`; empty where there is none."""
        element = self._observation.element(ref)
        if element is None:
            return ""
        name = self._quoted(element.key.name, NAME_CHARS)
        return " ".join(part for part in (element.key.role, name, self.where(ref)) if part)

    def where(self, ref: int) -> str:
        """Where the element is; empty if its name is unique on the page, or nothing tells it apart."""
        element = self._observation.element(ref)
        if element is None or (element.key.name.strip() and self._names[element.key.role, element.key.name] == 1):
            return ""
        alike = self._alike(element)
        if ref not in self._line_of:
            return _ordinal(ref, alike)
        shown = [other for other in alike if other in self._line_of]
        at = shown.index(ref)
        near, far = shown[max(0, at - NEAR) : at + NEAR + 1], [*shown[: max(0, at - NEAR)], *shown[at + NEAR + 1 :]]
        for describe in (self._in_line, self._under, self._among):
            words = {other: describe(other, near) for other in near}
            if not words[ref] or Counter(words.values())[words[ref]] > 1:
                continue
            if describe != self._in_line or not self._is_repeated(self._own_texts(ref, near), far):
                return words[ref]
        return _ordinal(ref, alike)

    def lies_at(self, x: float, y: float) -> str:
        """The smallest element whose box holds the point, in words; empty if none or boxes were not observed."""
        hit = [element for element in self._observation.elements if _holds(element, x, y)]
        return self.named(min(hit, key=lambda element: element.area).ref) if hit else ""

    def _alike(self, element: Element) -> list[int]:
        key = element.key
        return [e.ref for e in self._observation.elements if (e.key.role, e.key.name) == (key.role, key.name)]

    def _in_line(self, ref: int, alike: Sequence[int]) -> str:
        """The other texts of the element's line that not all lines of *alike* elements have."""
        number = self._line_of[ref]
        text = self._quoted(_cells(self._own(ref, alike)), TEXT_CHARS)
        if not text:
            return ""
        beside = [other for other in alike if self._line_of[other] == number]
        place = "" if self._has_label(number, ref, alike) else f" {_ordinal(ref, beside)}"
        return f"{'in row' if ' | ' in self._lines[number] else 'beside'} {text}{place}"

    def _own(self, ref: int, alike: Sequence[int]) -> list[_Piece]:
        number = self._line_of[ref]
        others = {self._line_of[other] for other in alike} - {number}
        shared = set[str].intersection(*(set(self._texts(line)) for line in others)) if others else set[str]()
        part = self._label(number, ref, alike) if self._has_label(number, ref, alike) else self._pieces(number)
        return [piece for piece in part if piece.text and piece.text not in shared and piece.ref != ref]

    def _has_label(self, number: int, ref: int, alike: Sequence[int]) -> bool:
        """Whether each of several *alike* elements on the line has a text of its own, or *ref* stands there alone."""
        here = [piece.ref for piece in self._pieces(number) if piece.ref in alike]
        labels = [_cells(self._label(number, other, alike)) for other in here if other is not None]
        return len(here) == 1 or (all(labels) and len(set(labels)) == len(labels))

    def _label(self, number: int, ref: int, alike: Sequence[int]) -> list[_Piece]:
        """The pieces of a line between *ref* and its neighbours of *alike* there: before it, or else after it."""
        row = self._pieces(number)
        at = [index for index, piece in enumerate(row) if piece.ref in alike]
        mine = next(index for index in at if row[index].ref == ref)
        if len(at) == 1:
            return row
        before = max((index for index in at if index < mine), default=-1)
        after = min((index for index in at if index > mine), default=len(row))
        first = any(piece.text for piece in row[: at[0]])  # a label stands before each, or after each
        return row[before + 1 : mine] if first else row[mine + 1 : after]

    def _own_texts(self, ref: int, alike: Sequence[int]) -> list[str]:
        """What a description of the line shows before its cut."""
        own, size = [piece.text for piece in self._own(ref, alike)], 0
        for count, text in enumerate(own):
            size += len(text) + len(_CELL)
            if size > TEXT_CHARS:
                return own[:count]
        return own

    def _is_repeated(self, texts: Sequence[str], refs: Sequence[int]) -> bool:
        """Whether a line of *refs* holds all *texts* as whole words."""
        wanted = [f" {_plain(text)} " for text in texts]
        lines = (f" {_plain(self._lines[self._line_of[ref]])} " for ref in refs)
        return any(all(text in line for text in wanted) for line in lines)

    def _under(self, ref: int, alike: Sequence[int]) -> str:
        """The nearest heading above, or the frame's title."""
        for number in range(self._line_of[ref] - 1, -1, -1):
            line = self._lines[number]
            if line.startswith("--- ") and (marker := _MARKER.match(line)) is not None:
                title = self._quoted(_unescaped(marker["title"] or ""), TEXT_CHARS)
                return f"in frame {title}" if title and line.startswith("--- frame") else ""
            if line.startswith(_HEADING):
                heading = self._quoted(_cells(self._pieces(number, _HEADING)), TEXT_CHARS)
                return f"under {heading}" if heading else ""
        return ""

    def _among(self, ref: int, alike: Sequence[int]) -> str:
        """The lines between the element and its neighbours of *alike* above, and the next line below."""
        number = self._line_of[ref]
        lines = sorted({self._line_of[other] for other in alike})
        at = lines.index(number)
        gap = number - lines[at - 1] if at else lines[1] - number if len(lines) > 1 else NEIGHBOURS + 1
        above = self._nearest(range(number - 1, max(-1, number - min(gap, BLOCK + 1)), -1), BLOCK)
        end = lines[at + 1] if at + 1 < len(lines) else len(self._lines)
        below = self._nearest(range(number + 1, end), 1)
        parts = [f"after {self._quoted(_CELL.join(reversed(above)), TEXT_CHARS)}"] if above else []
        parts += [f"before {self._quoted(below[0], TEXT_CHARS)}"] if below else []
        return ", ".join(parts)

    def _nearest(self, numbers: Iterable[int], most: int) -> list[str]:
        found: list[str] = []
        for number in numbers:
            line = self._lines[number]
            if _MARKER.match(line) or line.startswith(_HEADING) or len(found) == most:
                break
            if text := " ".join(self._texts(number)):
                found.append(text)
        return found

    def _texts(self, number: int) -> list[str]:
        head = _HEADING if self._lines[number].startswith(_HEADING) else ""
        return [piece.text for piece in self._pieces(number, head) if piece.text]

    def _pieces(self, number: int, head: str = "") -> list[_Piece]:
        """Controls and texts of a line. A control whose name is not unique on the page tells nothing apart."""
        if number not in self._rows:
            self._rows[number] = list(_distinct(self._read(self._lines[number].removeprefix(head))))
        return self._rows[number]

    def _read(self, line: str) -> Iterator[_Piece]:
        cell, in_options = 0, False
        for piece in pieces(line):
            text = piece.text.removeprefix("|").lstrip()
            cell += piece.before.count("|") + (text != piece.text)
            control = _CONTROL.match(text) if piece.is_control else None
            in_options = control is None and (in_options or " options:" in piece.before) and text.startswith('"')
            if control is not None:
                name = _unescaped(control[3])
                unique = self._names[control[2], name] == 1
                yield _Piece(name if unique else "", cell, int(control[1]))
            elif not in_options:
                yield _Piece(text, cell)

    def _quoted(self, text: str, limit: int) -> str:
        """The text in quotes, masked, then cut; empty for an empty text."""
        folded = " ".join(self._mask(text).split())
        short = folded if len(folded) <= limit else folded[: limit - 1] + "…"
        return '"' + short.replace("\\", "\\\\").replace('"', '\\"') + '"' if short else ""


def _distinct(row: Iterable[_Piece]) -> Iterator[_Piece]:
    """Leaves out texts that an earlier piece of the row holds: names of parts repeat that of the whole."""
    seen = ""
    for piece in row:
        repeats = bool(piece.text) and f" {piece.text} " in f" {seen} "
        yield _Piece("", piece.cell, piece.ref) if repeats else piece
        seen = f"{seen} {piece.text}" if piece.text else seen


def _cells(row: Iterable[_Piece]) -> str:
    """The texts of a row, those of one cell with blanks between, cells with a dot."""
    cells: dict[int, list[str]] = {}
    for piece in row:
        if piece.text:
            cells.setdefault(piece.cell, []).append(piece.text)
    return _CELL.join(" ".join(texts) for texts in cells.values())


def _ordinal(ref: int, alike: Sequence[int]) -> str:
    """The element's place among those with the same name; empty for a single one."""
    return f"({alike.index(ref) + 1} of {len(alike)})" if len(alike) > 1 else ""


def _plain(text: str) -> str:
    """The words of a text, without the marks of the page's grammar."""
    return " ".join(_MARKS.sub(" ", text).split())


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _holds(element: Element, x: float, y: float) -> bool:
    box = element.box
    return box is not None and box.x <= x <= box.x + box.width and box.y <= y <= box.y + box.height
