"""Finds the lines of a page that hold a quote, so that a shortened page keeps them whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envs.observer.page_lines import without_cues, without_refs
from judges.evidence import normalised
from models.prompting.invisible_characters import visible


def quoted_lines(text: str, quotes: Iterable[str]) -> frozenset[int]:
    """0-based indexes of the lines of *text* that hold one of *quotes*, which may go over several lines.

    A quote was copied from the page with or without the numbers of controls and their cues; white space is equal.
    """
    lines = visible(text).split("\n")
    forms = [[normalised(line) for line in form] for form in _forms(lines)]
    wanted = [normalised(visible(quote)) for quote in quotes]
    return frozenset(index for form in forms for quote in wanted if quote for index in _holding(form, quote))


def holds(text: str, quotes: Iterable[str]) -> bool:
    """Whether *text* holds each of *quotes*."""
    return all(quoted_lines(text, [quote]) for quote in quotes)


def _forms(lines: list[str]) -> Iterator[list[str]]:
    yield lines
    yield [without_refs(line) for line in lines]
    yield [without_cues(line) for line in lines]
    yield [without_cues(without_refs(line)) for line in lines]


def _holding(lines: list[str], quote: str) -> Iterator[int]:
    """The lines of the first place of *quote* in the text of *lines*."""
    filled = [(index, line) for index, line in enumerate(lines) if line]
    start = " ".join(line for _, line in filled).find(quote)
    end = start + len(quote)
    at = 0
    for index, line in filled:
        if start >= 0 and at < end and start < at + len(line):
            yield index
        at += len(line) + 1
