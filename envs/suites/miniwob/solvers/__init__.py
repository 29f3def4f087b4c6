"""Scripted solvers, one small function per task, with the same information as a policy.

Guaranteed: a solver is a pure function of the :class:`Screen` (instruction, observation, past actions), and solves
nearly every seed of its task. Not guaranteed: the shortest solution, or recovery from any state.
"""

from __future__ import annotations

from envs.suites.miniwob.solvers.screen import Past, Screen, Solver, Unsolvable
from envs.suites.miniwob.solvers.table import SOLVERS

__all__ = ["SOLVERS", "Past", "Screen", "Solver", "Unsolvable"]
