"""A page as text and elements: where each element stands, in words that a resolver can compare.

Made from what a trace keeps of an observation (its text and keys), or from a live observation: the two are compared
line by line, so both are read by the same code. Numbers of elements mean nothing here but the way from a line to a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from envs.core.observation import ElementKey, Observation
from envs.core.trace import ElementKeyRecord
from envs.observer.page_state import steady_text

_MARK: Final = re.compile(r"(?<!\\)\[(\d+)\] ([\w-]+)")
_END: Final = re.compile(r"  (?=\[\d+\] )| \| ")
_WORD: Final = re.compile(r"\w+")
_CHUNK_LINES: Final = 8
"""Lines above or below an element that say where it stands."""
_DECAY: Final = 0.75
"""Weight of a line relative to the next nearer one."""

ROW_MARK: Final = " | "
"""Parts the cells of a table row."""

Words = Mapping[str, float]
"""Words with how near they stand to the element: 1 in the nearest line."""


class Standing(NamedTuple):
    """An element and where it stands."""

    ref: int
    key: ElementKey
    line: int | None
    """Index of its line; None where the text does not show it."""


@dataclass(frozen=True)
class Page:
    """One look at a page."""

    lines: tuple[str, ...]
    elements: tuple[Standing, ...]

    @classmethod
    def of(cls, text: str, keys: Iterable[tuple[int, ElementKey]]) -> Page:
        """The page whose observation showed *text*, with the elements under their numbers."""
        known = dict(keys)
        lines = tuple(text.splitlines())
        places: dict[int, int] = {}
        for number, line in enumerate(lines):
            for mark in _MARK.finditer(line):
                ref = int(mark[1])
                if ref in known and known[ref].role == mark[2]:
                    places.setdefault(ref, number)
        return cls(lines, tuple(Standing(ref, key, places.get(ref)) for ref, key in known.items()))

    @classmethod
    def recorded(cls, text: str, rows: Iterable[ElementKeyRecord]) -> Page:
        """From the blobs of a trace."""
        return cls.of(text, ((row.ref, row.key) for row in rows))

    @classmethod
    def live(cls, look: Observation) -> Page:
        """Elements that are not shown are among them, without a line."""
        return cls.of(look.text, ((element.ref, element.key) for element in look.elements))

    @cached_property
    def by_ref(self) -> Mapping[int, Standing]:
        return {element.ref: element for element in self.elements}

    def own(self, element: Standing) -> Words:
        """Words of the element's line, its own text left out."""
        if element.line is None:
            return {}
        line = self.lines[element.line]
        for mark in _MARK.finditer(line):
            if int(mark[1]) == element.ref:
                end = _END.search(line, mark.end())
                line = line[: mark.start()] + (line[end.start() :] if end else "")
                break
        return dict.fromkeys(_words(line), 1.0)

    def is_in_row(self, element: Standing) -> bool:
        """Whether its line is a row of a table."""
        return element.line is not None and ROW_MARK in self.lines[element.line]

    def above(self, element: Standing, alike: Sequence[Standing]) -> Words:
        """Words of the lines before it, back to the element of *alike* before; neighbours of it are passed over."""
        return self._chunk(element, alike, -1)

    def below(self, element: Standing, alike: Sequence[Standing]) -> Words:
        """Words of the lines after it, up to the next element of *alike*."""
        return self._chunk(element, alike, 1)

    def _chunk(self, element: Standing, alike: Sequence[Standing], step: int) -> Words:
        if element.line is None:
            return {}
        taken = {one.line for one in alike}
        at = element.line + step
        while at in taken:
            at += step
        found: dict[str, float] = {}
        weight = 1.0
        for _ in range(_CHUNK_LINES):
            if not 0 <= at < len(self.lines) or at in taken:
                break
            for word in _words(self.lines[at]):
                found.setdefault(word, weight)
            at, weight = at + step, weight * _DECAY
        return found


def _words(line: str) -> list[str]:
    """Words without numbers of elements and without what changes by itself."""
    return _WORD.findall(_MARK.sub(r"\2", steady_text(line)).casefold())
