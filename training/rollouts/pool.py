"""What plays the episodes of a phase: a pool takes instances and gives back run folders, as `mira run` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agent.config import RunConfig
from agent.progress import Listener
from agent.results import EpisodeResult
from agent.runner import run_suite
from envs.errors import BadInput
from envs.tasks import TaskSelection


@dataclass(frozen=True, slots=True)
class Rollouts:
    """The episodes of one call of :meth:`RolloutPool.play`."""

    runs: tuple[Path, ...]
    """Run folders that hold the traces, in the order of the selection."""
    episodes: tuple[EpisodeResult, ...]
    """Finished episodes in the order of the runs, those that a dying worker broke included."""
    planned: int
    """Episodes that were asked for."""
    workers_lost: int = 0
    """Worker processes that died and were replaced."""

    @property
    def complete(self) -> bool:
        """False where the run was interrupted, or where workers died before some episodes had begun."""
        return len(self.episodes) == self.planned


class RolloutPool(Protocol):
    """Plays selections, one call at a time."""

    async def play(self, config: RunConfig, selection: TaskSelection, out: Path) -> Rollouts:
        """Plays every instance × attempt and leaves run folders below *out*.

        Raises BadInput or ModelUnavailable in one line where the run cannot start; what goes wrong later is an outcome
        of its episode.
        """
        ...

    async def aclose(self) -> None:
        """Gives back what the pool holds; a second call does nothing."""
        ...


class LocalPool:
    """A :class:`RolloutPool` that is this process: `RunConfig.workers` environments in one Chromium."""

    def __init__(self, listeners: Sequence[Listener] = ()) -> None:
        self._listeners = tuple(listeners)

    async def play(self, config: RunConfig, selection: TaskSelection, out: Path) -> Rollouts:
        result = await run_suite(config, selection, out, self._listeners)
        return Rollouts((result.folder,), result.episodes, result.planned)

    async def aclose(self) -> None:
        """Nothing outlives a call."""


def shards(selection: TaskSelection, size: int) -> tuple[TaskSelection, ...]:
    """*selection* in parts of at most *size* instances, in order; each is a run of its own.

    Raises BadInput for a selection of nothing.
    """
    refs = selection.refs()
    if not refs:
        raise BadInput("no task instance to play: the selection is empty")
    return tuple(TaskSelection(selection.suite, picked=refs[i : i + size]) for i in range(0, len(refs), size))
