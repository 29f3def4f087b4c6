"""Runs rollouts on a Ray cluster. Each worker is a process with its own Chromium and policy.

The selection is split into shards. A shard is one run folder below *out*, which must have the same path on every
machine (one machine, or a shared file system with `flock`). Workers take shards until none is left.

After a worker crash, a new worker *resumes* the shard by the rules of `mira resume`: finished episodes stay, and no
committed action is sent again. Episodes in progress are retried once. An episode with two worker crashes gets a
`broken` footer and is not retried, so a page that crashes its worker affects no other episode. A shard whose workers
crash before any episode begins is abandoned.

Ray listens on all network interfaces and executes code that it receives. Keep any cluster, also a local one, behind a
firewall or in a network namespace.
"""

# Ray is an optional extra. Without it, its types are unknown.
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
from models.optional import install_command
from training.rollouts.pool import Rollouts, split_selection

if TYPE_CHECKING:
    from ray.actor import ActorHandle

MAX_DEATHS: Final = 2
"""Worker crashes after which an episode is broken: the first attempt and the retry."""
START_S: Final = 120.0
"""Timeout for a worker process to start, in seconds, imports included."""


class WorkerDied(EnvError):
    """A worker process crashed, or was killed at its deadline, during an episode."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of the selection and its run folder."""

    config: RunConfig
    selection: TaskSelection
    out: Path
    run_id: str

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.out / self.run_id)


class Worker:
    """Runs shards in a worker process. :class:`RayPool` makes it a Ray actor."""

    def pid(self) -> int:
        return os.getpid()

    def play(self, shard: Shard) -> str | None:
        """Runs *shard*, or the rest of it, to its end. Returns the reason if it cannot start, otherwise None."""
        try:
            asyncio.run(_run_or_resume(shard))
        except (BadInput, ModelError) as error:
            return str(error)
        return None


async def _run_or_resume(shard: Shard) -> None:
    if shard.folder.manifest.exists():
        # The worker may be on another machine than the one that began the shard: the caller grants its settings.
        granted = shard.config.resolved() | {"suite": shard.selection.suite}
        await resume(shard.folder.path, granted_settings=granted)
    else:
        await run_suite(shard.config, shard.selection, shard.out, run_id=shard.run_id)


@dataclass(slots=True)
class _PoolState:
    """The state of one call of `play`."""

    left: list[Shard]
    deaths: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Worker crashes by (run, episode); the episode is empty if none had begun."""
    workers_lost: int = 0


class RayPool:
    """Runs selections on a Ray cluster, one call at a time. Use as an async context manager."""

    def __init__(
        self, workers: int, *, address: str | None = None, shard_size: int = 8, shard_deadline_s: float = 3600.0
    ) -> None:
        """*address* is that of a running cluster; None starts one on this machine that ends with the pool.

        *shard_size* is a number of instances. *shard_deadline_s* is the timeout of one worker for one shard; exceeding
        it counts as a crash. Raises BadInput if Ray is not installed.
        """
        try:
            import ray
        except ImportError:
            raise BadInput(f"rollouts on a cluster need Ray: {install_command('ray')}") from None
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
        """Stops the cluster, or closes the connection to it, if this pool opened it."""
        if self._started:
            import ray

            self._started = False
            await asyncio.to_thread(ray.shutdown)

    async def play(
        self, config: RunConfig, selection: TaskSelection, out: Path, *, run_id: str | None = None
    ) -> Rollouts:
        """Runs every instance × attempt and writes a run folder for each shard below *out*.

        With the *run_id* of an interrupted call and the same selection, it continues that call's shards. Raises
        BadInput in one line if a shard cannot start. Later errors are outcomes of their episodes.
        """
        run_id, parts = run_id or new_run_id(), split_selection(selection, self._size)
        pending = [Shard(config, part, _absolute(out), f"{run_id}-{i:03d}") for i, part in enumerate(parts)]
        state = _PoolState(list(pending))
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._workers, len(pending))):
                    group.create_task(self._run_worker(state))
        except* BadInput as problems:
            raise BadInput(str(problems.exceptions[0])) from None
        episodes = tuple(episode for shard in pending for episode in _finished(shard))
        runs = tuple(shard.folder.path for shard in pending)
        return Rollouts(runs, episodes, len(selection.refs()) * config.attempts, state.workers_lost)

    async def _run_worker(self, state: _PoolState) -> None:
        """Runs shards on one worker, which is replaced after every crash."""
        actor = await self._start_worker()
        try:
            while state.left:
                shard = state.left.pop(0)
                while not await self._run_shard(actor, shard):
                    self._stop_worker(actor)
                    state.workers_lost += 1
                    unfinished = await asyncio.to_thread(record_death, shard, state.deaths)
                    actor = await self._start_worker()
                    if not unfinished:
                        break
        finally:
            self._stop_worker(actor)

    async def _run_shard(self, actor: ActorHandle[Any], shard: Shard) -> bool:
        """Runs *shard* on *actor*. Returns False if the worker crashed. Raises BadInput if the shard cannot start."""
        from ray.exceptions import RayActorError

        try:
            problem = await asyncio.wait_for(actor.play.remote(shard), self._deadline_s)
        except (RayActorError, TimeoutError):
            return False
        if problem is not None:
            raise BadInput(problem)
        return True

    async def _start_worker(self) -> ActorHandle[Any]:
        """Starts a worker and waits until it answers. Raises BadInput if that takes longer than `START_S`, e.g. without
        free CPUs."""
        from ray.exceptions import RayActorError

        actor = self._actor_class.remote()
        try:
            await asyncio.wait_for(actor.pid.remote(), START_S)
        except (RayActorError, TimeoutError) as error:
            self._stop_worker(actor)
            reason = (str(error).strip().splitlines() or ["no room in the cluster?"])[-1][:300]
            raise BadInput(f"no Ray worker came up within {START_S:g} s: {type(error).__name__}: {reason}") from None
        return actor

    def _stop_worker(self, actor: ActorHandle[Any]) -> None:
        import ray

        ray.kill(actor, no_restart=True)


def _absolute(out: Path) -> Path:
    """Returns an absolute path, since workers have another working directory."""
    return out.absolute()


def record_death(shard: Shard, deaths: Counter[tuple[str, str]]) -> bool:
    """Counts a worker crash for *shard*'s episodes in progress. Returns whether episodes are left to run.

    An episode that reaches `MAX_DEATHS` gets its footer here. Must not be called while a worker runs the shard.
    """
    folder = shard.folder
    if not folder.manifest.exists():
        deaths[shard.run_id, ""] += 1
        return deaths[shard.run_id, ""] < MAX_DEATHS
    manifest = folder.read_manifest()
    jobs = manifest.jobs()
    finished = folder.finished(jobs)
    begun = [job for job in jobs if job not in finished and folder.was_started(job.episode_id)]
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
    results = shard.folder.finished(jobs)
    return tuple(results[job] for job in jobs if job in results)


def _connect(address: str | None, workers: int) -> None:
    """Connects to the cluster at *address*, or starts a local one, without dashboard and usage reports."""
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
        _system_config={"worker_niceness": 0},  # Ray's default of 15 starves browsers on a busy machine
    )
