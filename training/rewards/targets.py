"""What is right, for each kind of task, and whether an answer is: the verifiers C of the SSL paper, App. B.4.

A target is data of an example; nothing that a completion says can change it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Annotated, Literal

from pydantic import Field, model_validator

from envs.actions import Action, ClickAt, DragAt, ScrollAt
from envs.languages import ParseError, language
from envs.record import Record
from training.rewards.answers import Said
from training.rewards.geometry import Box, Point

BoxField = tuple[float, float, float, float]
MOVES = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}
"""(rows, columns) of a step in a maze."""
AIMS = frozenset({"x", "y", "to_x", "to_y"})
"""Fields of an action that are places on the screen: a box judges them, not equality."""


class PointTarget(Record):
    """An element to point at: two numbers, or the four of a box."""

    kind: Literal["point"] = "point"
    box: BoxField
    """Left, top, right, bottom of the right element, in pixels of the image."""
    size: tuple[int, int]
    """Width and height of the image, in pixels."""

    @property
    def region(self) -> Box:
        return Box(*self.box)

    @model_validator(mode="after")
    def _fits(self) -> PointTarget:
        _check_place(self.box, self.size)
        return self


class StepTarget(Record):
    """One action of an agent."""

    kind: Literal["step"] = "step"
    action: Action
    language: Literal["program", "id"] = "program"
    """In which the answer is written."""
    place: PointTarget | None = None
    """Where the action's point may be; None: it must be equal. Of a drag, where it ends: one box cannot judge both."""


def _check_place(box: BoxField, size: tuple[int, int]) -> None:
    if not Box(*box).area > 0:
        raise ValueError(f"box {box} has no area")
    if min(size) < 1:
        raise ValueError(f"an image of {size[0]} x {size[1]} pixels shows nothing")


class MazeTarget(Record):
    """A maze: `#` wall, `.` floor, `S` start, `G` goal. The answer is a path as letters U, D, L, R."""

    kind: Literal["maze"] = "maze"
    rows: tuple[str, ...]
    path: str
    """A shortest path; any path that is one is right."""

    @model_validator(mode="after")
    def _is_one(self) -> MazeTarget:
        if len({len(row) for row in self.rows}) != 1 or set("".join(self.rows)) - set("#.SG"):
            raise ValueError("a maze is rows of one length, of the characters # . S G")
        if not is_path(self.rows, self.path):
            raise ValueError(f"{self.path!r} does not lead from S to G")
        return self


class SudokuTarget(Record):
    """A sudoku of 4x4 or 9x9: rows of digits, 0 where it is empty. The answer is the filled rows."""

    kind: Literal["sudoku"] = "sudoku"
    puzzle: tuple[str, ...]
    solution: tuple[str, ...]

    @model_validator(mode="after")
    def _is_one(self) -> SudokuTarget:
        if not (keeps_clues(self.puzzle, self.solution) and is_sudoku(self.solution)):
            raise ValueError("the solution does not solve the puzzle")
        return self


class GridTarget(Record):
    """A grid of digits, as in ARC. The answer is its rows."""

    kind: Literal["grid"] = "grid"
    rows: tuple[str, ...] = Field(min_length=1)


Target = Annotated[PointTarget | StepTarget | MazeTarget | SudokuTarget | GridTarget, Field(discriminator="kind")]


def is_right(target: Target, said: Said) -> bool:
    """C(τ): whether the answer solves the task."""
    match target:
        case PointTarget():
            point = point_of(said)
            return point is not None and target.region.holds(point)
        case StepTarget():
            return is_right_step(target, action_of(target, said))
        case MazeTarget():
            return is_path(target.rows, path_of(said))
        case SudokuTarget():
            rows = rows_of(said)
            return keeps_clues(target.puzzle, rows) and is_sudoku(rows)
        case GridTarget():
            return rows_of(said) == target.rows


def placed(target: Target, said: Said) -> tuple[Point, PointTarget] | None:
    """The point that the answer gives and the place that judges it; None where it gives none, or nothing judges it."""
    match target:
        case PointTarget():
            point = point_of(said)
            return None if point is None else (point, target)
        case StepTarget():
            point = landing_of(target, action_of(target, said))
            return None if point is None or target.place is None else (point, target.place)
        case _:
            return None


def is_placed(target: Target) -> bool:
    """Whether right answers name a point that a place judges."""
    match target:
        case PointTarget():
            return True
        case StepTarget():
            return target.place is not None and bool(aims_of(target.action))
        case _:
            return False


def point_of(said: Said) -> Point | None:
    """The point that the answer gives: its only two numbers, or the centre of the box that its only four make."""
    match said.numbers:
        case (x, y):
            return Point(x, y)
        case (left, top, right, bottom):
            return Box(left, top, right, bottom).centre
        case _:
            return None


def box_of(said: Said) -> Box | None:
    """The box that the answer gives: its only four numbers."""
    return Box(*said.numbers) if len(said.numbers) == 4 else None


def action_of(target: StepTarget, said: Said) -> Action | None:
    """None where the answer holds no action."""
    try:
        return language(target.language).parse(said.answer).action
    except ParseError:
        return None


def is_right_step(target: StepTarget, action: Action | None) -> bool:
    """Same kind, same arguments; where the target has a place, the point within it (SSL paper, App. B.4, 1 to 3)."""
    if action is None or action.kind != target.action.kind:
        return False
    landing = landing_of(target, action)
    skipped = AIMS if landing is not None else frozenset[str]()
    same = action.model_dump(exclude=set(skipped)) == target.action.model_dump(exclude=set(skipped))
    return same and (landing is None or target.place is None or target.place.region.holds(landing))


def landing_of(target: StepTarget, action: Action | None) -> Point | None:
    """The point of *action* that the target's place judges; None where it has no place, or *action* is of another kind
    or names no point."""
    if action is None or target.place is None or action.kind != target.action.kind:
        return None
    points = aims_of(action)
    return points[-1] if points else None


def aims_of(action: Action) -> tuple[Point, ...]:
    """The places on the screen that *action* names."""
    match action:
        case ClickAt() | ScrollAt():
            return (Point(action.x, action.y),)
        case DragAt():
            return (Point(action.x, action.y), Point(action.to_x, action.to_y))
        case _:
            return ()


def path_of(said: Said) -> str:
    """The answer's moves: its letters U, D, L and R, whatever stands between them; empty where it has others."""
    letters = re.sub(r"[\s,;]+", "", said.answer)
    return letters if set(letters) <= MOVES.keys() else ""


def cells_of(rows: Sequence[str], path: str) -> Iterator[tuple[int, int]]:
    """Where *path* goes from the start, which comes first, walls or not. What leaves the grid is still told."""
    at = next((row, line.index("S")) for row, line in enumerate(rows) if "S" in line)
    yield at
    for move in path:
        down, right = MOVES[move]
        at = (at[0] + down, at[1] + right)
        yield at


def is_path(rows: Sequence[str], path: str) -> bool:
    """It leads from S to G over floor alone, and ends there (App. B.4)."""
    if sum(row.count("S") for row in rows) != 1 or sum(row.count("G") for row in rows) != 1:
        return False
    if set(path) - MOVES.keys():
        return False
    cells = tuple(cells_of(rows, path))
    walkable = all(0 <= r < len(rows) and 0 <= c < len(rows[0]) and rows[r][c] != "#" for r, c in cells)
    return walkable and rows[cells[-1][0]][cells[-1][1]] == "G"


def rows_of(said: Said) -> tuple[str, ...]:
    """The answer's rows of digits: a line is one, or what stands between `/`."""
    parts = (re.sub(r"[\s,|]+", "", part) for part in re.split(r"[\n/]", said.answer))
    rows = tuple(part for part in parts if part)
    return rows if all(row.isascii() and row.isdigit() for row in rows) else ()


def is_sudoku(rows: Sequence[str]) -> bool:
    """Each row, column and square holds every digit once (App. B.4)."""
    size = len(rows)
    side = math.isqrt(size)
    if side < 2 or side * side != size or size > 9 or any(len(row) != size for row in rows):
        return False
    whole = {str(digit) for digit in range(1, size + 1)}
    columns = ("".join(row[c] for row in rows) for c in range(size))
    squares = (
        "".join(row[c : c + side] for row in rows[r : r + side])
        for r in range(0, size, side)
        for c in range(0, size, side)
    )
    return all(set(part) == whole for part in chain(rows, columns, squares))


def keeps_clues(puzzle: Sequence[str], rows: Sequence[str]) -> bool:
    """*rows* are as large as *puzzle* and say what it says where it says anything."""
    return len(rows) == len(puzzle) and all(
        len(row) == len(given) and all(clue in ("0", digit) for clue, digit in zip(given, row, strict=True))
        for given, row in zip(puzzle, rows, strict=True)
    )
