"""Generates mazes: a random spanning tree of rooms, with some additional doors.

:mod:`training.grpo.puzzles.library_mazes` has the generators of the package maze-dataset. This one needs no extra, and
the measurements in `docs/results/grpo.md` train and test on its mazes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random

from training.grpo.rewards.grids import MOVES
from training.grpo.rewards.targets import MazeTarget

ASK = "Walk from S to G over the floor (.), not through walls (#). Answer with moves: U, D, L, R."
EXTRA_DOORS = 0.1
"""Share of the remaining walls between two rooms that are opened, so that several paths exist."""


def maze(rng: Random, size: int) -> tuple[str, MazeTarget]:
    """Returns (prompt, target) of a maze of *size* x *size* cells, odd and at least 3, with distinct start and goal."""
    check_side(size)
    cells = _dig(rng, size)
    floor = [(r, c) for r in range(0, size, 2) for c in range(0, size, 2)]
    start, goal = rng.sample(floor, 2)
    cells[start[0]][start[1]], cells[goal[0]][goal[1]] = "S", "G"
    rows = tuple("".join(row) for row in cells)
    return maze_prompt(rows), MazeTarget(rows=rows, path=shortest(rows))


def check_side(size: int) -> None:
    """Raises ValueError unless *size* is a side of a maze: rooms, with a wall or an opening between two of them."""
    if size < 3 or size % 2 == 0:
        raise ValueError(f"a maze's side is an odd number of at least 3, not {size}")


def maze_prompt(rows: Sequence[str]) -> str:
    """Returns the question with the maze of *rows*."""
    return "\n".join((ASK, *rows))


def _dig(rng: Random, size: int) -> list[list[str]]:
    """Builds a random spanning tree of the rooms by depth-first search, and adds some doors."""
    cells = [["#"] * size for _ in range(size)]
    stack = [(2 * rng.randrange((size + 1) // 2), 2 * rng.randrange((size + 1) // 2))]
    cells[stack[0][0]][stack[0][1]] = "."
    while stack:
        r, c = stack[-1]
        around = [(r + 2 * down, c + 2 * right) for down, right in MOVES.values()]
        closed = [(y, x) for y, x in around if 0 <= y < size and 0 <= x < size and cells[y][x] == "#"]
        if not closed:
            stack.pop()
            continue
        y, x = rng.choice(closed)
        cells[(r + y) // 2][(c + x) // 2] = cells[y][x] = "."
        stack.append((y, x))
    walls = [(r, c) for r in range(size) for c in range(size) if (r + c) % 2 and cells[r][c] == "#"]
    for r, c in rng.sample(walls, round(EXTRA_DOORS * len(walls))):
        cells[r][c] = "."
    return cells


def shortest(rows: Sequence[str]) -> str:
    """Returns a shortest path from S to G. Raises ValueError without one."""
    start = next((r, row.index("S")) for r, row in enumerate(rows) if "S" in row)
    paths = {start: ""}
    queue = deque([start])
    while queue:
        r, c = queue.popleft()
        if rows[r][c] == "G":
            return paths[r, c]
        for move, (down, right) in MOVES.items():
            to = (r + down, c + right)
            inside = 0 <= to[0] < len(rows) and 0 <= to[1] < len(rows[0])
            if inside and rows[to[0]][to[1]] != "#" and to not in paths:
                paths[to] = paths[r, c] + move
                queue.append(to)
    raise ValueError("no path leads from S to G")
