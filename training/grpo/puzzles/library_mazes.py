"""Generates mazes with the package maze-dataset (Ivanitskiy et al. 2023), as the SSL paper does. Extra `mazes`."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from itertools import pairwise
from random import Random
from typing import Any, Final, Literal

import numpy as np

from envs.core.errors import BadInput
from models.optional import install_command, missing_line
from training.grpo.puzzles.choices import parse_choice
from training.grpo.puzzles.maze import check_side, maze_prompt
from training.grpo.rewards.grids import MOVES
from training.grpo.rewards.targets import MazeTarget

MazeGenerator = Literal["dfs", "wilson", "kruskal", "recursive_division", "percolation", "dfs_percolation"]
MAZE_GENERATORS: Final[tuple[MazeGenerator, ...]] = (
    "dfs",
    "wilson",
    "kruskal",
    "recursive_division",
    "percolation",
    "dfs_percolation",
)
"""Generators of maze-dataset without their prefix `gen_`. Its `gen_prim` is left out: it warns that it is no Prim's
algorithm. The last two open walls at random: their mazes may have several paths."""
EXTRA: Final = "mazes"
TRIES: Final = 100
"""Number of mazes without two connected cells after which the percolation is rejected."""
_LETTERS: Final = {step: letter for letter, step in MOVES.items()}


def parse_maze_generator(name: str) -> MazeGenerator:
    """Returns *name* as a generator of maze-dataset. Raises BadInput."""
    return parse_choice(name, MAZE_GENERATORS, f"--generator {name!r}: maze-dataset has {', '.join(MAZE_GENERATORS)}")


def library_maze(
    generator: MazeGenerator, percolation: float | None = None
) -> Callable[[Random, int], tuple[str, MazeTarget]]:
    """Returns a function that returns (prompt, target) of a maze of *size* x *size* cells, odd and at least 3.

    A maze of side 2n − 1 is maze-dataset's lattice of n x n rooms without its outer wall. *percolation*: the
    probability, 0 to 1, with which a wall is opened; None: maze-dataset's, 0.4. Raises BadInput if the extra is not
    installed, or if *generator* opens no walls.
    """
    options: dict[str, float] = {}
    if percolation is not None:
        if not generator.endswith("percolation"):
            raise BadInput("--percolation needs --generator percolation or dfs_percolation")
        if not 0 <= percolation <= 1:
            raise BadInput(f"--percolation {percolation:g} is not a probability: use 0 to 1")
        options["p"] = percolation
    library = _library()
    build: Any = getattr(library.LatticeMazeGenerators, f"gen_{generator}")

    def make(rng: Random, size: int) -> tuple[str, MazeTarget]:
        check_side(size)
        shape = np.full(2, (size + 1) // 2)
        with _seeded(rng.getrandbits(32)):
            for _ in range(TRIES):
                lattice: Any = build(shape, **options)
                rooms: Any = lattice.generate_random_path(endpoints_not_equal=True, except_on_no_valid_endpoint=False)
                if rooms is not None and len(rooms) > 1:
                    solved: Any = library.SolvedMaze.from_lattice_maze(lattice, rooms)
                    return _converted(solved.as_ascii(), solved.solution.tolist())
        raise ValueError(f"{TRIES} mazes of {generator} had no two connected cells: raise --percolation or --size")

    return make


def _converted(drawing: str, rooms: list[list[int]]) -> tuple[str, MazeTarget]:
    """Converts maze-dataset's *drawing*, with its path (X), and the (row, column) of the *rooms* on the path. A step
    between two rooms is two moves: through the opening between them, and into the room."""
    inner = [line[1:-1] for line in drawing.splitlines()[1:-1]]
    rows = tuple(line.translate(str.maketrans({" ": ".", "X": ".", "E": "G"})) for line in inner)
    steps = ((after[0] - before[0], after[1] - before[1]) for before, after in pairwise(rooms))
    return maze_prompt(rows), MazeTarget(rows=rows, path="".join(2 * _LETTERS[step] for step in steps))


@contextmanager
def _seeded(seed: int) -> Generator[None]:
    """Seeds the global generators of `random` and NumPy, which maze-dataset draws from, and restores them."""
    before, numpy_before = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(numpy_before)


def _library() -> Any:
    """Imports maze-dataset, which seeds `random` when it is imported. Raises BadInput."""
    if line := missing_line("--generator", EXTRA, "maze_dataset"):
        raise BadInput(line)
    try:
        with _seeded(0):
            return import_module("maze_dataset")
    except ImportError as error:
        reason = " ".join(str(error).split())[:100]
        raise BadInput(
            f"maze_dataset is installed and cannot be imported ({reason}): {install_command(EXTRA)}"
        ) from error
