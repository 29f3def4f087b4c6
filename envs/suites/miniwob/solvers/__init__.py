"""Scripted solutions, one small function a task, that see only what a policy sees.

Promised: a solver is a pure function of the :class:`Screen` (instruction, observation, past actions), and solves
nearly every seed of its task. Not promised: that it is the shortest way, or that it recovers from any state.
"""

from __future__ import annotations

from envs.suites.miniwob.solvers.screen import Past, Screen, Solver, Unsolvable
from envs.suites.miniwob.solvers.table import SOLVERS

__all__ = ["SOLVERS", "Past", "Screen", "Solver", "Unsolvable"]
