"""A target of each kind with its right answer, and screenshots as real PNG files."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from envs.core.actions import ClickAt, DragAt, ScrollAt, Type
from training.grpo.rewards import (
    ChoiceTarget,
    GridTarget,
    MazeTarget,
    OptionTarget,
    PointTarget,
    StepTarget,
    SudokuTarget,
    Target,
    TextTarget,
)

POINT = PointTarget(box=(100, 200, 160, 230), size=(1000, 500))
"""Centre (130, 215), half sizes 30 and 15: a standard deviation of SSL is 10 pixels across and 5 down."""
CHOICE = ChoiceTarget(boxes=((0, 0, 50, 20), (100, 200, 160, 230), (10, 5, 60, 25)), right=1, size=(1000, 500))
OPTION = OptionTarget(options=("a cart", "a list of orders", "a form"), right=1)
TEXT = TextTarget(answers=("Shop new phones", "New phones"), metric="rouge_l")
CLICK = StepTarget(action=ClickAt(x=130, y=215), places=(POINT,))
TYPE = StepTarget(action=Type(ref=7, text="Ada L."))
DRAG = StepTarget(
    action=DragAt(x=10, y=20, to_x=130, to_y=215), places=(PointTarget(box=(0, 10, 20, 30), size=(1000, 500)), POINT)
)
SCROLL = StepTarget(action=ScrollAt(x=130, y=215, dy=100), language="id", places=(POINT,))
MAZE = MazeTarget(
    rows=(
        "S.....",
        ".####.",
        ".####.",
        ".####.",
        ".####.",
        ".....G",
    ),
    path="RRRRRDDDDD",
)
"""Two shortest paths; the reference is the one along the top."""
SUDOKU_4 = SudokuTarget(puzzle=("1000", "0012", "0100", "0021"), solution=("1234", "3412", "2143", "4321"))
SUDOKU_9 = SudokuTarget(
    puzzle=(
        "023056780",
        "456789123",
        "789123456",
        "234567891",
        "567891234",
        "891234567",
        "345678912",
        "678912345",
        "912345670",
    ),
    solution=(
        "123456789",
        "456789123",
        "789123456",
        "234567891",
        "567891234",
        "891234567",
        "345678912",
        "678912345",
        "912345678",
    ),
)
GRID = GridTarget(rows=("000", "050", "000", "777"))

SOLVED: dict[str, tuple[Target, str]] = {
    "choice": (CHOICE, "B"),
    "option": (OPTION, "B"),
    "text": (TEXT, "New phones"),
    "point": (POINT, "(130, 215)"),
    "click": (CLICK, 'do(action="Click At", x=130, y=215)'),
    "type": (TYPE, 'do(action="Type", argument="Ada L.", element="7")'),
    "drag": (DRAG, 'do(action="Drag At", x=10, y=20, to_x=130, to_y=215)'),
    "scroll": (SCROLL, "```scroll_at [130] [215] [0] [100]```"),
    "maze": (MAZE, "RRRRR DDDDD"),
    "sudoku 4x4": (SUDOKU_4, "\n".join(SUDOKU_4.solution)),
    "sudoku 9x9": (SUDOKU_9, "\n".join(SUDOKU_9.solution)),
    "grid": (GRID, "0 0 0\n0 5 0\n0 0 0\n7 7 7"),
}
"""By name, a target and the answer that is worth the most."""
PLACES = ("point", "click", "drag", "scroll")
"""Those of them that are places on a screen."""


def png(grey: Sequence[Sequence[int]] | NDArray[np.generic]) -> bytes:
    """A file of these intensities, 0 to 255."""
    file = io.BytesIO()
    Image.fromarray(np.asarray(grey, dtype=np.uint8)).save(file, "PNG")
    return file.getvalue()


def words(text: str) -> int:
    """Stands for a tokenizer: a word is a token."""
    return len(text.split())
