"""Generates sudokus of 4x4 or 9x9 with a unique solution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from training.grpo.rewards.targets import SudokuTarget

ASK = "Fill the empty cells (0): each row, column and square holds every digit once. Answer with the rows."
BLANKS = 0.4
"""Default share of empty cells. A cell stays filled if emptying it would allow a second solution."""


def sudoku(rng: Random, size: int, blanks: float = BLANKS) -> tuple[str, SudokuTarget]:
    """Returns (prompt, target) of a sudoku with side *size*, 4 or 9, and a share of at most *blanks* empty cells."""
    if size not in (4, 9):
        raise ValueError(f"a sudoku's side is 4 or 9, not {size}")
    solution = _solution(rng, size)
    puzzle = [list(row) for row in solution]
    places = [(r, c) for r in range(size) for c in range(size)]
    rng.shuffle(places)
    left = round(blanks * size * size)
    for r, c in places:
        if not left:
            break
        clue, puzzle[r][c] = puzzle[r][c], 0
        if _count_solutions(puzzle, 2) == 1:
            left -= 1
        else:
            puzzle[r][c] = clue
    rows = tuple("".join(map(str, row)) for row in puzzle)
    target = SudokuTarget(puzzle=rows, solution=tuple("".join(map(str, row)) for row in solution))
    return "\n".join((ASK, *rows)), target


def _solution(rng: Random, size: int) -> list[list[int]]:
    """Returns a random solution: an empty grid, filled digit by digit in random order, with backtracking. Every grid is
    possible, though not all are equally likely."""
    grid = [[0] * size for _ in range(size)]
    _fill(rng, grid)
    return grid


def _fill(rng: Random, grid: list[list[int]]) -> bool:
    """Fills the empty cells of *grid*; returns False, and leaves them empty, if there is no way to."""
    cell = _tightest(grid)
    if cell is None:
        return True
    r, c, free = cell
    for digit in rng.sample(free, len(free)):
        grid[r][c] = digit
        if _fill(rng, grid):
            return True
    grid[r][c] = 0
    return False


def candidates(puzzle: Sequence[Sequence[int]], row: int, column: int) -> list[int]:
    """The digits that the row, the column and the square of a cell do not have yet."""
    side = math.isqrt(len(puzzle))
    top, left = row - row % side, column - column % side
    used = {*puzzle[row], *(line[column] for line in puzzle)}
    used |= {digit for line in puzzle[top : top + side] for digit in line[left : left + side]}
    return [digit for digit in range(1, len(puzzle) + 1) if digit not in used]


def _tightest(puzzle: Sequence[Sequence[int]]) -> tuple[int, int, list[int]] | None:
    """Row, column and candidates of the first empty cell with at most one candidate, else of the first one with the
    fewest; None if no cell is empty."""
    best: tuple[int, int, list[int]] | None = None
    for r, line in enumerate(puzzle):
        for c, digit in enumerate(line):
            if digit:
                continue
            free = candidates(puzzle, r, c)
            if best is None or len(free) < len(best[2]):
                best = (r, c, free)
                if len(free) < 2:
                    return best
    return best


def _count_solutions(puzzle: list[list[int]], limit: int) -> int:
    """Counts solutions up to *limit*, trying the cell with the fewest candidates first. *puzzle* is restored
    afterwards."""
    cell = _tightest(puzzle)
    if cell is None:
        return 1
    r, c, free = cell
    count = 0
    for digit in free:
        puzzle[r][c] = digit
        count += _count_solutions(puzzle, limit - count)
        if count >= limit:
            break
    puzzle[r][c] = 0
    return count
