"""A page as text lines and elements, with the words around each element, for the resolver.

A page is built from the text and keys of an observation, recorded or live, by the same code, because the two are
compared line by line. Element numbers only connect a line with a key.
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
"""Number of lines above or below an element that describe its position."""
_DECAY: Final = 0.75
"""Weight of a line relative to the next nearer one."""

ROW_MARK: Final = " | "
"""Separates the cells of a table row."""

Words = Mapping[str, float]
"""Words with their weight by distance to the element: 1 in the nearest line."""


class Standing(NamedTuple):
    """An element and its line in the page text."""

    ref: int
    key: ElementKey
    line: int | None
    """Index of its line; None if the text does not show it."""


@dataclass(frozen=True)
class Page:
    """One observation of a page."""

    lines: tuple[str, ...]
    elements: tuple[Standing, ...]

    @classmethod
    def of(cls, text: str, keys: Iterable[tuple[int, ElementKey]]) -> Page:
        """Builds the page from an observation's *text* and its elements by number."""
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
        """Builds the page from the blobs of a trace."""
        return cls.of(text, ((row.ref, row.key) for row in rows))

    @classmethod
    def live(cls, observation: Observation) -> Page:
        """Builds the page from a live observation; elements that are not shown have no line."""
        return cls.of(observation.text, ((element.ref, element.key) for element in observation.elements))

    @cached_property
    def by_ref(self) -> Mapping[int, Standing]:
        return {element.ref: element for element in self.elements}

    def own(self, element: Standing) -> Words:
        """Words of the element's line, without its own text."""
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
        """Whether the element's line is a table row."""
        return element.line is not None and ROW_MARK in self.lines[element.line]

    def above(self, element: Standing, alike: Sequence[Standing]) -> Words:
        """Words of the lines above, up to the previous element of *alike*; adjacent elements of *alike* are skipped."""
        return self._chunk(element, alike, -1)

    def below(self, element: Standing, alike: Sequence[Standing]) -> Words:
        """Words of the lines below, down to the next element of *alike*."""
        return self._chunk(element, alike, 1)

    def _chunk(self, element: Standing, alike: Sequence[Standing], step: int) -> Words:
        if element.line is None:
            return {}
        taken = {one.line for one in alike}
        at = element.line + step
        while at in taken:
            at += step
        words: dict[str, float] = {}
        weight = 1.0
        for _ in range(_CHUNK_LINES):
            if not 0 <= at < len(self.lines) or at in taken:
                break
            for word in _words(self.lines[at]):
                words.setdefault(word, weight)
            at, weight = at + step, weight * _DECAY
        return words


def _words(line: str) -> list[str]:
    """Words of *line* without element numbers, clocks and tokens."""
    return _WORD.findall(_MARK.sub(r"\2", steady_text(line)).casefold())
