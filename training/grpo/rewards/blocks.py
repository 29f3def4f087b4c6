"""Scores the correct cells of a grid by blocks (SSL paper, §3.3 and App. B.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from models.vision.answers import ParsedCompletion
from training.grpo.rewards.grids import cells_of, parse_path, parse_rows
from training.grpo.rewards.targets import GridTarget, MazeTarget, SudokuTarget

Grid = Sequence[Sequence[object]]
Scale = Literal["tiered", "counts", "continuous"]
"""Value of a block. `tiered`: the share of matching cells in tiers, with 0 (App. B.2). `counts`: the fixed counts of
§3.3, for blocks of nine cells, without 0. `continuous`: the share itself."""


def compared_grids(target: MazeTarget | SudokuTarget | GridTarget, completion: ParsedCompletion) -> tuple[Grid, Grid]:
    """Returns (answer, correct solution) as grids of equal size.

    For a maze: which cells are on the path. For a sudoku or grid: the digits. A grid of another size is resampled by
    nearest neighbour (App. B.2). An answer that cannot be parsed matches no cell.
    """
    match target:
        case MazeTarget():
            path = parse_path(completion)
            if not path:  # an empty path is no attempt, and most cells of a maze are on no path
                return _nothing(target.rows), _walked(target.rows, target.path)
            return _walked(target.rows, path), _walked(target.rows, target.path)
        case SudokuTarget():
            rows = parse_rows(completion)
            return (rows if _sizes(rows) == _sizes(target.solution) else _nothing(target.solution)), target.solution
        case GridTarget():
            return _fitted(parse_rows(completion), target.rows), target.rows


def _walked(rows: Sequence[str], path: str) -> Grid:
    on = set(cells_of(rows, path))
    return [[(r, c) in on for c in range(len(row))] for r, row in enumerate(rows)]


def _nothing(like: Sequence[Sequence[object]]) -> Grid:
    return [[None] * len(row) for row in like]


def _sizes(rows: Sequence[str]) -> list[int]:
    return [len(row) for row in rows]


def _fitted(rows: Sequence[str], like: Sequence[str]) -> Grid:
    if not rows or len({len(row) for row in rows}) != 1:
        return _nothing(like)
    high, wide = len(like), len(like[0])
    return [
        [rows[(2 * r + 1) * len(rows) // (2 * high)][(2 * c + 1) * len(rows[0]) // (2 * wide)] for c in range(wide)]
        for r in range(high)
    ]


def block_edges(length: int, parts: int) -> tuple[int, ...]:
    """Block boundaries (App. B.2): `⌈i·length/parts⌉` for i = 0 … parts."""
    return tuple(math.ceil(i * length / parts) for i in range(parts + 1))


def block_score(
    answer: Grid, right: Grid, *, parts: int = 3, scale: Scale = "tiered", zones: int = 4, marked_only: bool = False
) -> float:
    """S(τ): the mean value of *parts* x *parts* blocks, 0 to 1. Blocks without cells, in a grid smaller than *parts*,
    are ignored.

    *zones*: number of tiers; 4 gives the paper's 1, 2/3, 1/3 and 0. *marked_only*: cells that are False in both grids
    are ignored. This is not in the paper: most cells of a maze are on no path, so any short path matches them.
    """
    down, across = block_edges(len(right), parts), block_edges(len(right[0]), parts)
    worth: list[float] = []
    for top, bottom in pairwise(down):
        for left, end in pairwise(across):
            cells = [(answer[r][c], right[r][c]) for r in range(top, bottom) for c in range(left, end)]
            counted = [
                (first, second) for first, second in cells if not marked_only or (first, second) != (False, False)
            ]
            if counted:
                worth.append(_worth(sum(first == second for first, second in counted), len(counted), scale, zones))
    return sum(worth) / len(worth)


def _worth(matched: int, cells: int, scale: Scale, zones: int) -> float:
    match scale:
        case "continuous":
            return matched / cells
        case "counts":
            return 1.0 if matched >= 7 else 2 / 3 if matched >= 4 else 1 / 3
        case "tiered":
            return min(zones * matched // cells, zones - 1) / (zones - 1)
