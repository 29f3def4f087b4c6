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
    """Returns a random solution: the cyclic square with permuted digits, rows and columns."""
    side = math.isqrt(size)
    digits = rng.sample(range(1, size + 1), size)
    lines = [[band * side + i for i in rng.sample(range(side), side)] for band in rng.sample(range(side), side)]
    rows = [line for band in lines for line in band]
    stacks = [[stack * side + i for i in rng.sample(range(side), side)] for stack in rng.sample(range(side), side)]
    columns = [line for stack in stacks for line in stack]
    permuted = [[digits[(side * (r % side) + r // side + c) % size] for c in columns] for r in rows]
    return [list(line) for line in zip(*permuted, strict=True)] if rng.random() < 0.5 else permuted


def candidates(puzzle: Sequence[Sequence[int]], row: int, column: int) -> list[int]:
    """The digits that the row, the column and the square of a cell do not have yet."""
    side = math.isqrt(len(puzzle))
    top, left = row - row % side, column - column % side
    used = {*puzzle[row], *(line[column] for line in puzzle)}
    used |= {digit for line in puzzle[top : top + side] for digit in line[left : left + side]}
    return [digit for digit in range(1, len(puzzle) + 1) if digit not in used]


def _count_solutions(puzzle: list[list[int]], limit: int) -> int:
    """Counts solutions up to *limit*, trying the cell with the fewest candidates first. *puzzle* is restored
    afterwards."""
    size = len(puzzle)
    best: tuple[int, int, list[int]] | None = None
    for r in range(size):
        for c in range(size):
            if puzzle[r][c]:
                continue
            free = candidates(puzzle, r, c)
            if best is None or len(free) < len(best[2]):
                best = (r, c, free)
    if best is None:
        return 1
    r, c, free = best
    count = 0
    for digit in free:
        puzzle[r][c] = digit
        count += _count_solutions(puzzle, limit - count)
        if count >= limit:
            break
    puzzle[r][c] = 0
    return count
