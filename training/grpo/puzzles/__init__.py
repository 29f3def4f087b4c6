"""Generates grid puzzles with solutions from a seed: the reasoning tasks of the SSL paper, in any size.

A prompt is one line with the task, and the grid. :mod:`training.grpo.rewards` scores answers.
"""

from training.grpo.puzzles.generation import KINDS, Kind, make_puzzles, parse_puzzle_kind

__all__ = ["KINDS", "Kind", "make_puzzles", "parse_puzzle_kind"]
