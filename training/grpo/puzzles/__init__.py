"""Puzzles on grids, made by chance from a seed: the reasoning tasks of the SSL paper, of any size, with their answers.

A prompt is one line that says what is asked, and the grid; :mod:`training.grpo.rewards` judges answers.
"""

from training.grpo.puzzles.generation import KINDS, Kind, make_puzzles, parse_puzzle_kind

__all__ = ["KINDS", "Kind", "make_puzzles", "parse_puzzle_kind"]
