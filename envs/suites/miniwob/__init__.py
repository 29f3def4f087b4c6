"""MiniWoB++ (the `miniwob` package) as a suite, with reference milestones, scripted solvers and demonstrations.

Guaranteed: every task page of the package starts by seed, steps by the typed action set and is scored by the
benchmark's own rule; only the full reward is a success. A restart of the same task takes milliseconds. A killed episode
is rebuilt from its seed and its committed actions. Not guaranteed: that each task can be solved from text (some are
drawn).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envs.suites.miniwob.environment import MiniwobEnvironment
    from envs.suites.miniwob.suite import MiniwobSuite

__all__ = ["MiniwobEnvironment", "MiniwobSuite"]


def __getattr__(name: str) -> object:
    """Imports the browser driver only when one of the two classes is used."""
    if name == "MiniwobSuite":
        from envs.suites.miniwob.suite import MiniwobSuite

        return MiniwobSuite
    if name == "MiniwobEnvironment":
        from envs.suites.miniwob.environment import MiniwobEnvironment

        return MiniwobEnvironment
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
