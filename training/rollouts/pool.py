"""Splits a selection into shards, each a run folder of `mira run`, and holds their episodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent.results import EpisodeResult
from agent.run.run_store import RunFolder
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection


@dataclass(frozen=True, slots=True)
class Rollouts:
    """The results of one call of :meth:`training.rollouts.ray_pool.RayPool.play`."""

    runs: tuple[Path, ...]
    """Run folders with the traces, in the order of the selection."""
    episodes: tuple[EpisodeResult, ...]
    """Finished episodes in the order of the runs, including those broken by a worker crash."""
    planned: int
    """Number of requested episodes."""
    workers_lost: int = 0
    """Number of worker processes that crashed and were replaced."""

    @property
    def complete(self) -> bool:
        """Whether all episodes finished; False if the run was interrupted, or if workers crashed before some episodes
        began."""
        return len(self.episodes) == self.planned


def find_runs(place: Path) -> tuple[RunFolder, ...]:
    """Returns the run at *place*, or the runs of a pool below it, in the order of the selection."""
    folder = RunFolder(place)
    if folder.manifest.exists() or not place.is_dir():
        return (folder,)
    return tuple(run for run in map(RunFolder, sorted(place.iterdir())) if run.manifest.exists())


def split_selection(selection: TaskSelection, size: int) -> tuple[TaskSelection, ...]:
    """Splits *selection* into shards of at most *size* instances, in order. Each shard is a run.

    Raises BadInput for an empty selection.
    """
    refs = selection.refs()
    if not refs:
        raise BadInput("no task instance to play: the selection is empty")
    return tuple(TaskSelection(selection.suite, picked=refs[i : i + size]) for i in range(0, len(refs), size))
