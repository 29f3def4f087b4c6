"""Puzzles on grids, made by chance from a seed: the reasoning tasks of the SSL paper, of any size, with their answers.

A prompt is one line that says what is asked, and the grid; :mod:`training.grpo.rewards` judges answers.
"""

from training.grpo.puzzles.making import KINDS, Kind, kind_of, make_puzzles

__all__ = ["KINDS", "Kind", "kind_of", "make_puzzles"]
