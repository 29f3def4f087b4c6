"""Shortens pages that the outcome judge is shown together: lines that another shown page has too appear once.

Pages of one site share their header, menu and footer. A run of lines that the last page, or an earlier one, shows in
the same words, apart from the numbers of controls, is replaced by one line that names that page, so nothing is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from envs.observer.page_lines import without_refs

RUN: Final = 3
"""Fewest consecutive lines that are replaced; a shorter run is about as long as the line in its place."""
LAST: Final = "the last page"


def without_repeats(
    pages: Sequence[tuple[str, str]], last: str, kept: Sequence[frozenset[int]] | None = None
) -> list[str]:
    """Returns the texts of *pages*, `(name, text)` each, without the lines that *last* or a page before shows too.

    *kept*: of each page the lines (0-based) that only *last* may stand for, because other pages may be cut.
    `=== 9 lines as on NAME` stands for such a run, which is one run on that page as well, and `=== 9 lines as on NAME,
    4 as on OTHER` for two runs in a row.
    """
    shown = _Shown()
    shown.add(LAST, last.split("\n"))
    short: list[str] = []
    for (name, text), whole in zip(pages, kept or [frozenset[int]()] * len(pages), strict=True):
        lines = text.split("\n")
        short.append("\n".join(shown.shortened(lines, whole)))
        shown.add(name, lines)
    return short


class _Shown:
    """Lines of the pages shown so far, by their first `RUN` lines from each place."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, ...], tuple[str, list[str], int]] = {}

    def add(self, name: str, lines: list[str]) -> None:
        plain = list(map(without_refs, lines))
        for start in range(len(plain) - RUN + 1):
            self._places.setdefault(tuple(plain[start : start + RUN]), (name, plain, start))

    def shortened(self, lines: list[str], whole: frozenset[int]) -> list[str]:
        plain = list(map(without_refs, lines))
        short: list[str] = []
        runs: list[str] = []
        start = 0
        while start < len(lines):
            name, count = self._run(plain, start, whole)
            if count < RUN:
                short += [*_marker(runs), lines[start]]
                runs = []
                start += 1
                continue
            runs.append(f"{count} as on {name}" if runs else f"{count} lines as on {name}")
            start += count
        return [*short, *_marker(runs)]

    def _run(self, plain: list[str], start: int, whole: frozenset[int]) -> tuple[str, int]:
        """The page that shows the lines from *start* on too, and how many of them."""
        place = self._places.get(tuple(plain[start : start + RUN]))
        if place is None:
            return "", 0
        name, other, at = place
        pairs = zip(plain[start:], other[at:], strict=False)
        count = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        bound = min((index for index in whole if index >= start), default=len(plain))
        return name, count if name == LAST else min(count, bound - start)


def _marker(runs: list[str]) -> list[str]:
    return [f"=== {', '.join(runs)}"] if runs else []
