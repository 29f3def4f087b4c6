"""Which tasks an oracle can play: those that ship a solver. On any other it could only fail, which says nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from agent.config import RunConfig
from envs.core.errors import BadInput
from envs.core.tasks import TaskInfo

SPECS: Final = ("oracle", "oracle:detours")
"""Policies that play the solvers of a suite, see :mod:`agent.run.oracle`."""
_NAMED: Final = 5
"""Tasks that a message names; the others are counted."""


def plays_oracle(config: RunConfig, suite: str) -> bool:
    """Whether an oracle is the policy; `scripted` is the older name of MiniWoB++'s, in manifests of runs."""
    return config.policy in SPECS or (config.policy == "scripted" and suite == "miniwob")


def unsolvable(names: Iterable[str], infos: Iterable[TaskInfo]) -> tuple[str, ...]:
    """Those of *names* that ship no solver, each once."""
    solvable = {info.name for info in infos if info.oracle}
    return tuple(name for name in dict.fromkeys(names) if name not in solvable)


def check_solvable(config: RunConfig, suite: str, names: Iterable[str], infos: Sequence[TaskInfo]) -> None:
    """Raises BadInput where an oracle is to play a task without a solver."""
    if plays_oracle(config, suite) and (missing := unsolvable(names, infos)):
        raise BadInput(
            f"policy {config.policy!r}: the suite {suite} ships no solver for {listed(missing)}; "
            f"those that have one: mira tasks --suite {suite}"
        )


def listed(names: Sequence[str]) -> str:
    """The first few, and how many more."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
