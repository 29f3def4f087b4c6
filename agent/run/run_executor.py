"""One process's sitting at a run: workers take episodes from the list, play them, and leave results.

Each worker has one environment; all share one Chromium, one graph and the models. What goes wrong
in one episode stays there: the next one starts in an environment known to be sound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from agent.episode.approval import Approver
from agent.episode.episode import AgentComponents, Episode, Identity, Interrupted
from agent.episode.graph import Graph
from agent.episode.run_episode import Entry, broken_start, error_line, play
from agent.progress import EpisodeEnded, EpisodeStarted, Event, Listener
from agent.results import EpisodeResult
from agent.run.resume import RecoveredEpisode, read_unfinished, rebuilt_state
from agent.run.run_store import Job, Manifest, RunFolder
from envs.browser.playwright_trace import TracedEnvironment
from envs.core.disk_errors import disk_refusal
from envs.core.errors import BadInput, BrowserNotStarted, EnvError, SessionNotOpened, TraceError
from envs.core.tasks import Environment, EpisodeStart, Suite
from envs.core.trace import Event as TraceEvent
from envs.core.trace import Footer, Header
from envs.core.trace_store import BlobStore, TraceWriter, has_header, now
from envs.security.secrets import SecretVault

NOT_STARTED: Final = EpisodeStart(instruction="", category="")
"""Of an episode whose world could not be brought to its start."""


class JobQueue:
    """The jobs that no worker has taken yet, in the order of the run.

    A worker stays with its task while any of it is left, since a page that is loaded starts again in milliseconds;
    then it takes the first task that nobody else plays.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._left = list(jobs)
        self._playing: dict[int, str] = {}

    def take(self, worker: int) -> Job | None:
        """The worker's next job; None once all are taken."""
        mine = self._playing.pop(worker, None)
        others = set(self._playing.values())
        same = (job for job in self._left if job.task.name == mine)
        free = (job for job in self._left if job.task.name not in others)
        job = next(same, None) or next(free, None) or next(iter(self._left), None)
        if job is not None:
            self._left.remove(job)
            self._playing[worker] = job.task.name
        return job


@dataclass(slots=True)
class World:
    """A worker's environment: made when it is first needed, closed as soon as it is not known to be sound."""

    suite: Suite
    _environment: Environment | None = None

    async def environment(self) -> Environment:
        """Raises SessionNotOpened: a browser too slow to open one is an error of the episode, not of the run."""
        if self._environment is None:
            try:
                self._environment = await self.suite.environment()
            except TimeoutError as error:
                raise SessionNotOpened("no browser session could be opened in time") from error
        return self._environment

    async def close(self) -> None:
        """The next episode gets a fresh one; safe to call twice."""
        environment, self._environment = self._environment, None
        if environment is not None:
            await environment.close()


def header_of(manifest: Manifest, job: Job, start: EpisodeStart = NOT_STARTED, start_url: str = "") -> Header:
    """The first line of *job*'s trace."""
    return Header(
        run_id=manifest.run_id,
        episode_id=job.episode_id,
        task=job.task,
        attempt=job.attempt,
        instruction=start.instruction,
        category=start.category,
        reference_milestones=start.milestones,
        start_url=start_url,
        config=manifest.config.resolved(),
        versions=manifest.versions,
        started_at=now(),
        parent=manifest.branch.parent if manifest.branch is not None else None,
    )


@dataclass(slots=True)
class RunExecutor:
    """Everything the workers share."""

    manifest: Manifest
    folder: RunFolder
    team: AgentComponents
    suite: Suite
    graph: Graph
    vault: SecretVault
    approver: Approver
    listeners: tuple[Listener, ...]
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    results: dict[Job, EpisodeResult] = field(default_factory=dict[Job, EpisodeResult])

    async def play(self) -> None:
        """Plays every job without a result; returns early, all episodes resumable, once `stopping` is set."""
        left = [job for job in self.manifest.jobs() if job not in self.results]
        jobs = JobQueue(left)
        workers = min(self.manifest.config.workers, len(left))
        async with asyncio.TaskGroup() as group:
            for number in range(workers):
                group.create_task(self._work(number, jobs), name=f"worker-{number}")

    def ordered_results(self) -> tuple[EpisodeResult, ...]:
        return tuple(self.results[job] for job in self.manifest.jobs() if job in self.results)

    def tell(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)

    async def _work(self, worker: int, jobs: JobQueue) -> None:
        world = World(self.suite)
        try:
            while not self.stopping.is_set() and (job := jobs.take(worker)) is not None:
                await self._episode(job, worker, world)
        except Interrupted:
            return
        finally:
            await world.close()

    async def _episode(self, job: Job, worker: int, world: World) -> None:
        """Plays one episode; an environment that is lost is replaced once, and the episode goes on from its trace."""
        lost = EnvError()
        for may_retry in (True, False):
            try:
                result = await self._attempt(job, worker, await world.environment(), may_retry=may_retry)
                break
            except EnvError as error:
                await world.close()
                self._raise_if_the_runs(error, job, again=may_retry)
                lost = error
        else:
            result = self._never_started(job, lost)
        self._keep(job, worker, result)
        if result.outcome == "broken":
            await world.close()

    def _raise_if_the_runs(self, error: EnvError, job: Job, *, again: bool) -> None:
        """Passes on what no other episode would survive: wrong input, no browser, a full disk, a trace that cannot be
        written, and, when it is not tried *again*, a browser that does not start, and the one address of an open task
        that does not open."""
        if refused := disk_refusal(error, self.folder.path):
            raise refused from error
        if isinstance(error, BadInput | TraceError) or (isinstance(error, BrowserNotStarted) and not again):
            raise error
        if self.manifest.open_task is not None and not again and not has_header(self.folder.trace(job.episode_id)):
            raise (BrowserNotStarted if isinstance(error, SessionNotOpened) else BadInput)(str(error)) from error

    async def _attempt(self, job: Job, worker: int, environment: Environment, *, may_retry: bool) -> EpisodeResult:
        path, saved = self.folder.trace(job.episode_id), self.folder.saved(job.episode_id)
        found = read_unfinished(path)
        if found is None:
            self.folder.take(job.episode_id)
            start = await environment.reset(job.task)
        else:
            start = await environment.restore_state(job.task, saved, found.replayable())
        self.tell(
            EpisodeStarted(job.episode_id, job.task, job.attempt, worker, start.instruction, found.step if found else 0)
        )
        with self._writer(path, durable=environment.restore == "reopen") as trace:
            episode = self._make_episode(job, environment, trace, start)
            episode.may_retry = may_retry
            if found is not None:
                header, footer = found.header, await self._continue(episode, found)
            else:
                header = header_of(self.manifest, job, start, (await episode.look()).url)
                trace.append(header)
                footer = await play(self.graph, episode, self.approver)
        if self.manifest.config.trace_zip and isinstance(environment, TracedEnvironment):
            await environment.save_playwright_trace(self.folder.zip(job.episode_id))
        return EpisodeResult.of(header, footer)

    async def _continue(self, episode: Episode, found: RecoveredEpisode) -> Footer:
        """Continues after the last committed step. Records in the trace what became of an open intent."""
        if found.open is not None:
            reopened = episode.environment.restore == "reopen"
            episode.note(found.open.step, "uncertain" if reopened else "void", "the run ended before its commit")
            found.decide(happened=reopened)
        before = f"; before that: {found.ended.error}" if found.ended is not None else ""
        episode.note(found.step, "resumed", f"after step {found.step}{before}")
        episode.take_over(found)
        state = rebuilt_state(found)
        if not state.ended_by and state.parse_errors >= self.manifest.config.limits.max_parse_errors:
            state = replace(state, ended_by="error", error="no readable action, and the run was cut off while it ended")
        if not state.ended_by and found.step and await episode.environment.done():
            state = replace(state, ended_by="world")
        if not found.planned:
            return await play(self.graph, episode, self.approver)
        return await play(self.graph, episode, self.approver, Entry(state, "execute" if found.step else "plan"))

    def _make_episode(self, job: Job, environment: Environment, trace: TraceWriter, start: EpisodeStart) -> Episode:
        return Episode(
            identity=Identity(self.manifest.run_id, job.episode_id, job.task, job.attempt),
            config=self.manifest.config,
            team=self.team,
            environment=environment,
            trace=trace,
            blobs=trace.blobs,
            start=start,
            tell=self.tell,
            saved=self.folder.saved(job.episode_id),
            stopping=self.stopping,
        )

    def _writer(self, path: Path, *, durable: bool) -> TraceWriter:
        """A world that died with its page is not worth a disk's cache flush; one that lives on is."""
        fsync = durable and self.manifest.config.fsync
        return TraceWriter(path, BlobStore(self.folder.blobs, self.vault, fsync=fsync), self.vault, fsync=fsync)

    def _never_started(self, job: Job, error: EnvError) -> EpisodeResult:
        """A world that could not be brought to its start: a broken episode with an empty trace."""
        path = self.folder.trace(job.episode_id)
        found = read_unfinished(path)
        with self._writer(path, durable=False) as trace:
            header = found.header if found else header_of(self.manifest, job)
            if found is None:
                trace.append(header)
            footer = broken_start(error, found.ledger.totals(found.step, 0.0) if found else None)
            if found is not None and found.ended is not None:  # nothing was done since then, so it may be tried again
                trace.append(TraceEvent(step=found.step, name="not_resumed", detail=error_line(error), at=now()))
                footer = footer.model_copy(update={"resumable": True})
            trace.append(footer)
        return EpisodeResult.of(header, footer)

    def _keep(self, job: Job, worker: int, result: EpisodeResult) -> None:
        """Appends the result of an episode whose footer is on disk to `results.jsonl`, and reports it."""
        result = result.masked(self.vault.mask)
        self.results[job] = result
        self.folder.append_result(result)
        self.tell(EpisodeEnded(worker, result))
