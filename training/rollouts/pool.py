"""A selection cut into shards, each a run folder as `mira run` writes it, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent.results import EpisodeResult
from agent.run.run_store import RunFolder
from envs.core.errors import BadInput
from envs.core.tasks import TaskSelection


@dataclass(frozen=True, slots=True)
class Rollouts:
    """The episodes of one call of :meth:`training.rollouts.ray_pool.RayPool.play`."""

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


def find_runs(place: Path) -> tuple[RunFolder, ...]:
    """The run at *place*, or the runs of a pool below it, in the order of the selection."""
    folder = RunFolder(place)
    if folder.manifest.exists() or not place.is_dir():
        return (folder,)
    return tuple(one for one in map(RunFolder, sorted(place.iterdir())) if one.manifest.exists())


def split_selection(selection: TaskSelection, size: int) -> tuple[TaskSelection, ...]:
    """*selection* in parts of at most *size* instances, in order; each is a run of its own.

    Raises BadInput for a selection of nothing.
    """
    refs = selection.refs()
    if not refs:
        raise BadInput("no task instance to play: the selection is empty")
    return tuple(TaskSelection(selection.suite, picked=refs[i : i + size]) for i in range(0, len(refs), size))
