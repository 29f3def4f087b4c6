"""Rollouts by workers of a Ray cluster, each a process with a Chromium and a policy of its own.

The selection is cut into shards; a shard is one run folder below *out*, which every machine must see under the same
path (one machine, or a shared file system with `flock`). Workers take shards until none is left.

When a worker process dies, a new one takes its place and *resumes* the shard, by the rules of `mira resume`: finished
episodes stay, no committed action is sent again. That is the one retry of the episodes that were being played. An
episode during which a worker dies for the second time gets a footer `broken` and is not touched again, so that a page
that kills its worker costs itself and nothing else. A shard whose workers die without beginning anything is given up.

Ray listens on every interface of its machines and runs what it is sent: keep a cluster, a local one too, behind a
firewall or in a network namespace.
"""

# Ray is an extra: where it is not installed, its types are unknown.
# pyright: reportMissingImports=false, reportUnknownParameterType=false

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent.config import RunConfig
from agent.episode.run_episode import broken_start
from agent.results import EpisodeResult
from agent.run.run_executor import header_of
from agent.run.run_store import Job, Manifest, RunFolder, new_run_id
from agent.run.runner import resume, run_suite
from envs.core.errors import BadInput, EnvError
from envs.core.tasks import TaskSelection
from envs.core.trace_store import BlobStore, TraceWriter, has_header
from models.base import ModelError
from training.rollouts.pool import Rollouts, split_selection

if TYPE_CHECKING:
    from ray.actor import ActorHandle

MAX_DEATHS: Final = 2
"""Workers that an episode may cost before it is broken: the first, and the one that retried it."""
START_S: Final = 120.0
"""Seconds for a worker process to come up, imports included."""


class WorkerDied(EnvError):
    """A worker process ended, or was ended at its deadline, in the middle of an episode."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of the selection, and the run folder it becomes."""

    config: RunConfig
    selection: TaskSelection
    out: Path
    run_id: str

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.out / self.run_id)


class Worker:
    """What runs in a worker process. Made an actor by :class:`RayPool`."""

    def pid(self) -> int:
        return os.getpid()

    def play(self, shard: Shard) -> str | None:
        """Plays *shard* to its end, or what is left of it. Returns why it cannot start; None where it was played."""
        try:
            asyncio.run(_played(shard))
        except (BadInput, ModelError) as error:
            return str(error)
        return None


async def _played(shard: Shard) -> None:
    if shard.folder.manifest.exists():
        # A worker on another machine than the one that began the shard: what it may use comes from the caller.
        given = shard.config.resolved() | {"suite": shard.selection.suite}
        await resume(shard.folder.path, given_again=given)
    else:
        await run_suite(shard.config, shard.selection, shard.out, run_id=shard.run_id)


@dataclass(slots=True)
class _Round:
    """The state of one call of `play`."""

    left: list[Shard]
    deaths: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Workers lost by (run, episode); the episode is empty where none had begun."""
    workers_lost: int = 0


class RayPool:
    """Plays selections on a Ray cluster, one call at a time. Use as an async context manager."""

    def __init__(
        self, workers: int, *, address: str | None = None, shard_size: int = 8, shard_deadline_s: float = 3600.0
    ) -> None:
        """*address* is a running cluster's; None starts one on this machine that ends with the pool.

        *shard_size* counts instances; *shard_deadline_s* bounds one worker's time with a shard: one that takes longer
        counts as dead. Raises BadInput where Ray is not installed.
        """
        try:
            import ray
        except ImportError:
            raise BadInput("rollouts on a cluster need Ray: pip install 'mira-web[ray]'") from None
        if workers < 1 or shard_size < 1:
            raise BadInput(f"a pool needs at least one worker and one instance a shard, not {workers} and {shard_size}")
        self._workers, self._size, self._deadline_s = workers, shard_size, shard_deadline_s
        self._started = not ray.is_initialized()
        if self._started:
            _connect(address, workers)
        self._actor_class: Any = ray.remote(num_cpus=1, max_restarts=0)(Worker)

    async def __aenter__(self) -> RayPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the cluster, or the connection to it, where this pool made it."""
        if self._started:
            import ray

            self._started = False
            await asyncio.to_thread(ray.shutdown)

    async def play(
        self, config: RunConfig, selection: TaskSelection, out: Path, *, run_id: str | None = None
    ) -> Rollouts:
        """Plays every instance × attempt and leaves a run folder for each shard below *out*.

        With the *run_id* of a call that was cut off, and the same selection, it goes on with that one's shards. Raises
        BadInput in one line where a shard cannot start; what goes wrong later is an outcome of its episode.
        """
        run_id, parts = run_id or new_run_id(), split_selection(selection, self._size)
        todo = [Shard(config, part, _absolute(out), f"{run_id}-{i:03d}") for i, part in enumerate(parts)]
        this = _Round(list(todo))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._workers, len(todo))):
                    group.create_task(self._work(this))
        except* BadInput as problems:
            raise BadInput(str(problems.exceptions[0])) from None
        episodes = tuple(episode for shard in todo for episode in _finished(shard))
        runs = tuple(shard.folder.path for shard in todo)
        return Rollouts(runs, episodes, len(selection.refs()) * config.attempts, this.workers_lost)

    async def _work(self, this: _Round) -> None:
        """One worker's place: it is filled again whenever its process dies."""
        actor = await self._hired()
        try:
            while this.left:
                shard = this.left.pop(0)
                while not await self._survived(actor, shard):
                    self._dismiss(actor)
                    this.workers_lost += 1
                    again = await asyncio.to_thread(record_death, shard, this.deaths)
                    actor = await self._hired()
                    if not again:
                        break
        finally:
            self._dismiss(actor)

    async def _survived(self, actor: ActorHandle[Any], shard: Shard) -> bool:
        """False where the worker died on the way. Raises BadInput where the shard cannot be played anywhere."""
        from ray.exceptions import RayActorError

        try:
            problem = await asyncio.wait_for(actor.play.remote(shard), self._deadline_s)
        except (RayActorError, TimeoutError):
            return False
        if problem is not None:
            raise BadInput(problem)
        return True

    async def _hired(self) -> ActorHandle[Any]:
        """A worker whose process answers. Raises BadInput where the cluster has no room for it within `START_S`."""
        from ray.exceptions import RayActorError

        actor = self._actor_class.remote()
        try:
            await asyncio.wait_for(actor.pid.remote(), START_S)
        except (RayActorError, TimeoutError) as error:
            self._dismiss(actor)
            reason = (str(error).strip().splitlines() or ["no room in the cluster?"])[-1][:300]
            raise BadInput(f"no Ray worker came up within {START_S:g} s: {type(error).__name__}: {reason}") from None
        return actor

    def _dismiss(self, actor: ActorHandle[Any]) -> None:
        import ray

        ray.kill(actor, no_restart=True)


def _absolute(out: Path) -> Path:
    """A worker has a working directory of its own."""
    return out.absolute()


def record_death(shard: Shard, deaths: Counter[tuple[str, str]]) -> bool:
    """Counts the death of *shard*'s worker against what it was playing; True where there is something left to play.

    An episode that reaches `MAX_DEATHS` gets its footer here. Must not be called while a worker plays the shard.
    """
    folder = shard.folder
    if not folder.manifest.exists():
        deaths[shard.run_id, ""] += 1
        return deaths[shard.run_id, ""] < MAX_DEATHS
    manifest = folder.read_manifest()
    jobs = manifest.jobs()
    finished = folder.finished(jobs)
    begun = [job for job in jobs if job not in finished and folder.was_taken(job.episode_id)]
    broken = 0
    for job in begun:
        deaths[shard.run_id, job.episode_id] += 1
        if deaths[shard.run_id, job.episode_id] >= MAX_DEATHS:
            _break(folder, manifest, job)
            broken += 1
    if not begun:
        deaths[shard.run_id, ""] += 1
    left = len(jobs) - len(finished) - broken
    return left > 0 and deaths[shard.run_id, ""] < MAX_DEATHS


def _break(folder: RunFolder, manifest: Manifest, job: Job) -> None:
    trace = folder.trace(job.episode_id)
    begun = has_header(trace)
    writer = TraceWriter(trace, BlobStore(folder.blobs), fsync=True)
    try:
        if not begun:
            writer.append(header_of(manifest, job))
        writer.append(broken_start(WorkerDied(f"{MAX_DEATHS} workers died while they played it")))
    finally:
        writer.close()


def _finished(shard: Shard) -> tuple[EpisodeResult, ...]:
    if not shard.folder.manifest.exists():
        return ()
    jobs = shard.folder.read_manifest().jobs()
    found = shard.folder.finished(jobs)
    return tuple(found[job] for job in jobs if job in found)


def _connect(address: str | None, workers: int) -> None:
    """Joins the cluster at *address*, or starts one here, without dashboard and usage reports."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is not None:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionError as error:
            raise BadInput(f"no Ray cluster at {address!r}: {' '.join(str(error).split())[:200]}") from None
        return
    ray.init(
        address="local",
        num_cpus=workers,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=100_000_000,
        _system_config={"worker_niceness": 0},  # Ray's 15 starves a browser beside anything else on the machine
    )
