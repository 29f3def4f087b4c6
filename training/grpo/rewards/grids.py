"""Parses and verifies answers to puzzles: maze paths, sudokus and grids of digits (SSL paper, App. B.4)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain

from models.vision.answers import ParsedCompletion

MOVES = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
"""(rows, columns) of a step in a maze."""


_MARKUP = re.compile(r"```(?![UDLR]+\b)[A-Za-z]\w*[ \t]*(?=[\r\n])|[`*\"']")
"""Code fences, with the word for a language at the end of the line, Markdown and quotes around an answer."""
_FULL_STOP = re.compile(r"\.\s*\Z")
_LABEL = re.compile(r"\A\s*(?:[a-z]+ ){0,4}(?:path|route|moves|steps|answer|solution)(?: is)?\s*:\s*", re.IGNORECASE)
"""Words and a colon before a path: `Path: RRDD`, `The final answer is:`."""


def parse_path(completion: ParsedCompletion) -> str:
    """Returns the answer's moves, letters U, D, L and R without separators, brackets, quotes, code fences, a label
    (`Path:`) and a full stop; empty if it has other letters."""
    letters = re.sub(r"[\s,;\[\]()]+|->|→", "", _LABEL.sub("", _bare(completion.answer)))
    return letters if set(letters) <= MOVES.keys() else ""


def cells_of(rows: Sequence[str], path: str) -> Iterator[tuple[int, int]]:
    """Yields the cells of *path*, beginning with the start. Walls are ignored; cells may be outside the grid."""
    at = next((row, line.index("S")) for row, line in enumerate(rows) if "S" in line)
    yield at
    for move in path:
        down, right = MOVES[move]
        at = (at[0] + down, at[1] + right)
        yield at


def is_path(rows: Sequence[str], path: str) -> bool:
    """Whether *path* leads from S over floor cells and ends at G (App. B.4)."""
    if sum(row.count("S") for row in rows) != 1 or sum(row.count("G") for row in rows) != 1:
        return False
    if set(path) - MOVES.keys():
        return False
    cells = tuple(cells_of(rows, path))
    walkable = all(0 <= r < len(rows) and 0 <= c < len(rows[0]) and rows[r][c] != "#" for r, c in cells)
    return walkable and rows[cells[-1][0]][cells[-1][1]] == "G"


def parse_rows(completion: ParsedCompletion) -> tuple[str, ...]:
    """Returns the answer's rows of digits, separated by line breaks, `/` or brackets (`[[1, 2], [3, 4]]`), without
    quotes, code fences and a full stop; empty if there are other characters."""
    text = _bare(re.sub(r"([\"'])\s*,\s*\1", "\n", completion.answer))  # rows of a list of texts
    ends = r"[\[\]]" if re.search(r"\[\s*\[", text) else r"[\n/\[\]]"  # a nested list may have a number a line
    parts = (re.sub(r"[\s,|]+", "", part) for part in re.split(ends, text))
    rows = tuple(part for part in parts if part)
    return rows if all(row.isascii() and row.isdigit() for row in rows) else ()


def _bare(answer: str) -> str:
    """*answer* without code fences, Markdown, quotes and a full stop at the end."""
    return _FULL_STOP.sub("", _MARKUP.sub("", answer))


def is_sudoku(rows: Sequence[str]) -> bool:
    """Whether each row, column and square holds every digit once (App. B.4)."""
    size = len(rows)
    side = math.isqrt(size)
    if side < 2 or side * side != size or size > 9 or any(len(row) != size for row in rows):
        return False
    digits = {str(digit) for digit in range(1, size + 1)}
    columns = ("".join(row[c] for row in rows) for c in range(size))
    squares = (
        "".join(row[c : c + side] for row in rows[r : r + side])
        for r in range(0, size, side)
        for c in range(0, size, side)
    )
    return all(set(part) == digits for part in chain(rows, columns, squares))


def keeps_clues(puzzle: Sequence[str], rows: Sequence[str]) -> bool:
    """Whether *rows* have the size of *puzzle* and contain all of its clues."""
    return len(rows) == len(puzzle) and all(
        len(row) == len(original) and all(clue in ("0", digit) for clue, digit in zip(original, row, strict=True))
        for original, row in zip(puzzle, rows, strict=True)
    )
