"""Checks which tasks an oracle can solve: those that ship a solver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from agent.config import RunConfig
from envs.core.errors import BadInput, listed
from envs.core.tasks import TaskInfo

SPECS: Final = ("oracle", "oracle:detours")
"""Policies that run the solvers of a suite, see :mod:`agent.run.oracle`."""


def plays_oracle(config: RunConfig, suite: str) -> bool:
    """Whether the policy is an oracle. Older manifests call the oracle of MiniWoB++ `scripted`."""
    return config.policy in SPECS or (config.policy == "scripted" and suite == "miniwob")


def unsolvable(names: Iterable[str], infos: Iterable[TaskInfo]) -> tuple[str, ...]:
    """Returns the tasks in *names* without a solver, without duplicates."""
    solvable = {info.name for info in infos if info.oracle}
    return tuple(name for name in dict.fromkeys(names) if name not in solvable)


def check_solvable(config: RunConfig, suite: str, names: Iterable[str], infos: Sequence[TaskInfo]) -> None:
    """Raises BadInput if the policy is an oracle and a task has no solver."""
    if plays_oracle(config, suite) and (missing := unsolvable(names, infos)):
        raise BadInput(
            f"policy {config.policy!r}: the suite {suite} ships no solver for {listed(missing)}; "
            f"mira tasks --suite {suite} lists the tasks that have one"
        )
