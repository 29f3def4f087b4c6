"""Executes what is left of a run in one process: workers take episodes from a queue and run them.

Each worker has one environment. All workers share one Chromium, one graph and the models. An error in one episode does
not affect the next one, which starts in a sound environment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from agent.episode.approval import Approver
from agent.episode.episode import AgentComponents, EnvironmentLost, Episode, Identity, Interrupted
from agent.episode.graph import Graph
from agent.episode.run_episode import Entry, broken_start, error_line, run_episode
from agent.progress import EpisodeEnded, EpisodeStarted, Event, Listener
from agent.results import EpisodeResult
from agent.run.changed_settings import differing
from agent.run.limits import continues, ending_of
from agent.run.resume import RecoveredEpisode, read_unfinished, rebuilt_state
from agent.run.run_store import Job, Manifest, RunFolder
from envs.browser.playwright_trace import TracedEnvironment
from envs.core.disk_errors import disk_refusal
from envs.core.errors import BadInput, BrowserNotStarted, EnvError, SessionNotOpened, TraceError
from envs.core.tasks import Environment, EpisodeStart, Suite
from envs.core.trace import LIMITS, Footer, Header
from envs.core.trace import Event as TraceEvent
from envs.core.trace_store import BlobStore, TraceWriter, has_header, now
from envs.core.written_tasks import environment_of
from envs.security.secrets import SecretVault
from envs.suites.browsergym.names import keeps_effects

log = logging.getLogger(__name__)

NOT_STARTED: Final = EpisodeStart(instruction="", category="")
"""Start of an episode whose environment could not be reset."""


class JobQueue:
    """Jobs that no worker has taken yet, in the order of the run.

    A worker keeps its task while jobs of it are left, because a loaded page restarts in milliseconds. Then it takes
    the first task that no other worker runs.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._left = list(jobs)
        self._running: dict[int, str] = {}

    def take(self, worker: int) -> Job | None:
        """Returns the worker's next job, or None if all are taken."""
        mine = self._running.pop(worker, None)
        others = set(self._running.values())
        same = (job for job in self._left if job.task.name == mine)
        free = (job for job in self._left if job.task.name not in others)
        job = next(same, None) or next(free, None) or next(iter(self._left), None)
        if job is not None:
            self._left.remove(job)
            self._running[worker] = job.task.name
        return job


@dataclass(slots=True)
class WorkerEnvironment:
    """A worker's environment. It is created on first use and closed once it may be damaged."""

    suite: Suite
    _environment: Environment | None = None

    async def get(self) -> Environment:
        """Returns the environment. Raises SessionNotOpened if no session opens in time: an error of the episode, not of
        the run."""
        if self._environment is None:
            try:
                self._environment = await self.suite.environment()
            except TimeoutError as error:
                raise SessionNotOpened("no browser session could be opened in time") from error
        return self._environment

    async def close(self) -> None:
        """Closes the environment; the next episode gets a new one. Safe to call twice. One that cannot be closed, as it
        may be damaged, is left to the end of the run."""
        environment, self._environment = self._environment, None
        if environment is not None:
            try:
                await environment.close()
            except Exception as error:  # noqa: BLE001 - a user's environment may raise anything
                log.error("an environment could not be closed: %s", type(error).__name__)


def header_of(manifest: Manifest, job: Job, start: EpisodeStart = NOT_STARTED, start_url: str = "") -> Header:
    """Builds the header of *job*'s trace."""
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


def _not_restored(error: EnvError, recovered: RecoveredEpisode, *, resumable: bool) -> Footer:
    """The footer of an episode whose environment could not be restored. One that a limit ended keeps its result; any
    other one is broken."""
    ended = recovered.ended
    if ended is not None and not ended.resumable:
        failed = f"not continued: {error_line(error)}"
        return ended.model_copy(update={"calls": (), "error": failed, "at": now()})
    broken = broken_start(error, recovered.usage_tracker.totals(recovered.step, 0.0))
    changed = recovered.config if recovered.config != recovered.header.config else None
    return broken.model_copy(update={"config": changed, "resumable": resumable})


@dataclass(slots=True)
class RunExecutor:
    """Executes a run; holds everything that its workers share."""

    manifest: Manifest
    folder: RunFolder
    components: AgentComponents
    suite: Suite
    graph: Graph
    vault: SecretVault
    approver: Approver
    listeners: tuple[Listener, ...]
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    results: dict[Job, EpisodeResult] = field(default_factory=dict[Job, EpisodeResult])

    async def run(self) -> None:
        """Runs every job without a result. Once `stopping` is set it returns early, and all episodes can be resumed."""
        left = [job for job in self.manifest.jobs() if job not in self.results]
        jobs = JobQueue(left)
        workers = min(self.manifest.config.workers, len(left))
        async with asyncio.TaskGroup() as group:
            for number in range(workers):
                group.create_task(self._work(number, jobs), name=f"worker-{number}")

    def ordered_results(self) -> tuple[EpisodeResult, ...]:
        return tuple(self.results[job] for job in self.manifest.jobs() if job in self.results)

    def notify(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)

    async def _work(self, worker: int, jobs: JobQueue) -> None:
        worker_environment = WorkerEnvironment(self.suite)
        try:
            while not self.stopping.is_set() and (job := jobs.take(worker)) is not None:
                await self._episode(job, worker, worker_environment)
        except Interrupted:
            return
        finally:
            await worker_environment.close()

    async def _episode(self, job: Job, worker: int, worker_environment: WorkerEnvironment) -> None:
        """Runs one episode. A lost environment is replaced once, and the episode continues from its trace. An exception
        that is no EnvError (an environment of a user's suite may raise any) counts as a lost environment."""
        lost = EnvError()
        begun = has_header(self.folder.trace(job.episode_id))
        for may_retry in (True, False):
            try:
                result = await self._attempt(job, worker, await worker_environment.get(), may_retry=may_retry)
                break
            except Interrupted:
                raise
            except Exception as error:  # noqa: BLE001 - a user's environment may raise anything
                await worker_environment.close()
                lost = self._lost(error, job)
                self._raise_if_fatal(lost, job, again=may_retry)
        else:
            result = self._never_started(job, lost, begun=begun)
        self._keep(job, worker, result)
        if result.outcome == "broken":
            await worker_environment.close()

    def _lost(self, error: Exception, job: Job) -> EnvError:
        """Returns *error*, or EnvironmentLost in its place. Only its type is logged: its message may hold a secret.
        Raises NotWritten if the disk refused a write."""
        if refused := disk_refusal(error, self.folder.path):
            raise refused from error
        if isinstance(error, EnvError):
            return error
        log.error("the environment of episode %s failed: %s", job.episode_id, type(error).__name__)
        lost = EnvironmentLost(error_line(error))
        lost.__cause__ = error
        return lost

    def _raise_if_fatal(self, error: EnvError, job: Job, *, again: bool) -> None:
        """Re-raises errors that every other episode would meet too: wrong input, no browser, a trace that cannot be
        written. Without another attempt (*again* is false) these include a browser that does not start, and an open
        task's address that does not open."""
        if isinstance(error, BadInput | TraceError) or (isinstance(error, BrowserNotStarted) and not again):
            raise error
        if self.manifest.open_task is not None and not again and not has_header(self.folder.trace(job.episode_id)):
            raise (BrowserNotStarted if isinstance(error, SessionNotOpened) else BadInput)(str(error)) from error

    async def _attempt(self, job: Job, worker: int, opened: Environment, *, may_retry: bool) -> EpisodeResult:
        environment = environment_of(job.task, opened)
        path, saved = self.folder.trace(job.episode_id), self.folder.saved(job.episode_id)
        recovered = read_unfinished(path)
        if recovered is None:
            self.folder.mark_started(job.episode_id)
            start = await environment.reset(job.task)
        else:
            start = await environment.restore_state(job.task, saved, recovered.replayable())
        self.notify(
            EpisodeStarted(
                job.episode_id, job.task, job.attempt, worker, start.instruction, recovered.step if recovered else 0
            )
        )
        with self._writer(path, durable=environment.restore == "reopen") as trace:
            episode = self._make_episode(job, environment, trace, start)
            episode.may_retry = may_retry
            if recovered is not None:
                header, footer = recovered.header, await self._continue(episode, recovered)
            else:
                header = header_of(self.manifest, job, start, (await episode.observe()).url)
                trace.append(header)
                footer = await run_episode(self.graph, episode, self.approver)
        if self.manifest.config.trace_zip and isinstance(opened, TracedEnvironment):
            await self._save_zip(job, opened)
        return EpisodeResult.of(header, footer)

    async def _save_zip(self, job: Job, environment: TracedEnvironment) -> None:
        """Writes Playwright's trace. The episode has its footer, so it is not played again where that fails."""
        try:
            await environment.save_playwright_trace(self.folder.zip(job.episode_id))
        except Exception as error:
            if refused := disk_refusal(error, self.folder.path):
                raise refused from error
            log.error("Playwright's trace of episode %s was not saved: %s", job.episode_id, type(error).__name__)

    async def _continue(self, episode: Episode, recovered: RecoveredEpisode) -> Footer:
        """Continues after the last committed step. Records in the trace how an open intent was resolved."""
        if recovered.open is not None:
            reopened = episode.environment.restore == "reopen"
            episode.note(recovered.open.step, "uncertain" if reopened else "void", "the run ended before its commit")
            recovered.decide(happened=reopened)
        self._note_resume(episode, recovered)
        episode.take_over(recovered)
        state = rebuilt_state(recovered)
        if state.ended_by in LIMITS and self._continues(recovered):
            state = replace(state, ended_by=None)
        if not state.ended_by and state.parse_errors >= self.manifest.config.limits.max_parse_errors:
            state = replace(state, ended_by="error", error="no readable action, and the run was cut off while it ended")
        if not state.ended_by and recovered.step and await episode.environment.done():
            state = replace(state, ended_by="environment")
        if not recovered.planned:
            return await run_episode(self.graph, episode, self.approver)
        return await run_episode(
            self.graph, episode, self.approver, Entry(state, "execute" if recovered.step else "plan")
        )

    def _note_resume(self, episode: Episode, recovered: RecoveredEpisode) -> None:
        """Records where the episode continues, how it had ended, and which settings are other ones from here on."""
        ended, config = recovered.ended, self.manifest.config
        reason = None if ended is None else ended.error or ending_of(recovered.header, ended)
        before = "" if reason is None else f"; before that: {reason}"
        changed = [f"{name} {old} → {new}" for name, (old, new) in differing(recovered.config, config).items()]
        now_set = f"; from here on: {', '.join(changed)}" if changed else ""
        detail = f"after step {recovered.step}{before}{now_set}"
        episode.note(recovered.step, "resumed", detail, config=config.resolved() if changed else None)
        episode.reconfigured = bool(differing(recovered.header.config, config))

    def _continues(self, recovered: RecoveredEpisode) -> bool:
        ended = recovered.ended
        return ended is not None and continues(recovered.header.config, ended, self.manifest.config.limits)

    def _make_episode(self, job: Job, environment: Environment, trace: TraceWriter, start: EpisodeStart) -> Episode:
        return Episode(
            identity=Identity(self.manifest.run_id, job.episode_id, job.task, job.attempt),
            config=self.manifest.config,
            components=self.components,
            environment=environment,
            trace=trace,
            blobs=trace.blobs,
            start=start,
            notify=self.notify,
            saved=self.folder.saved(job.episode_id),
            stopping=self.stopping,
        )

    def _writer(self, path: Path, *, durable: bool) -> TraceWriter:
        """Opens the trace. Only a *durable* environment, which outlives its page, is worth an fsync."""
        fsync = durable and self.manifest.config.fsync
        return TraceWriter(path, BlobStore(self.folder.blobs, self.vault, fsync=fsync), self.vault, fsync=fsync)

    def _never_started(self, job: Job, error: EnvError, *, begun: bool) -> EpisodeResult:
        """Records a broken episode whose environment could not be reset or restored. One that had *begun* before this
        process can still be continued, because its server may only be away now, unless it can never be restored."""
        path = self.folder.trace(job.episode_id)
        recovered = read_unfinished(path)
        with self._writer(path, durable=False) as trace:
            header = recovered.header if recovered else header_of(self.manifest, job)
            if recovered is None:
                trace.append(header)
            if recovered is None:
                footer = broken_start(error)
            else:
                later = begun and not keeps_effects(self.manifest.suite, job.task.name)
                footer = _not_restored(error, recovered, resumable=later or recovered.ended is not None)
            if recovered is not None and recovered.ended is not None:
                trace.append(TraceEvent(step=recovered.step, name="not_resumed", detail=error_line(error), at=now()))
            trace.append(footer)
        return EpisodeResult.of(header, footer)

    def _keep(self, job: Job, worker: int, result: EpisodeResult) -> None:
        """Appends the result of an episode whose footer is on disk to `results.jsonl`, and reports it."""
        result = result.masked(self.vault.mask)
        self.results[job] = result
        self.folder.append_result(result)
        self.notify(EpisodeEnded(worker, result))
