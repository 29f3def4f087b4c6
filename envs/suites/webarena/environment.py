"""One worker's WebArena environment: a session that is logged in to the task's sites, and the task's checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envs.browser.chromium import Chromium
from envs.browser.live_session import Bounds, LiveSession
from envs.browser.session import BrowserSession
from envs.core.actions import Action, ActionResult
from envs.core.errors import BadInput, EnvError, ResetFailed
from envs.core.observation import Observation
from envs.core.settings import SessionSettings
from envs.core.tasks import EpisodeStart, MilestoneCheck, Restore, Score, TaskRef
from envs.security.allowlist import Origins
from envs.suites.webarena.accounts import FORMS, Accounts
from envs.suites.webarena.evaluators import Evidence, Finding, FuzzyJudge, evaluate, in_cheap_order
from envs.suites.webarena.evaluators.agent_response import ANSWER_FORMAT
from envs.suites.webarena.pages import Pages
from envs.suites.webarena.request_log import Recorder
from envs.suites.webarena.sites import Sites, category
from envs.suites.webarena.task import AgentResponse, RequestSent, Task

NOT_ACHIEVABLE_HINT = (
    "If this cannot be done, answer exactly N/A and nothing else; "
    "the reason belongs in a comment before that action (# Note: the reason)."
)
"""Some tasks compare the complete answer with `N/A`, so an answer with a reason would fail."""


@dataclass(frozen=True, slots=True)
class SuiteContext:
    """The data that all environments of a suite share."""

    tasks: Mapping[str, Task]
    sites: Sites
    origins: Origins
    """The origins that an episode may access."""
    accounts: Accounts
    judge: FuzzyJudge
    strict_original: bool
    """Score by the benchmark's own rules, see :mod:`envs.suites.webarena.evaluators.original`."""
    settings: SessionSettings
    wait_s: float
    """How long a check waits for an element that appears late."""

    def task(self, ref: TaskRef) -> Task:
        """The task of *ref*. Raises BadInput for an unknown task or if its sites are not configured."""
        if ref.name not in self.tasks:
            raise BadInput(f"{ref.suite} has no task {ref.name!r}")
        task = self.tasks[ref.name]
        self.sites.require(task)
        return task


class WebArenaEnvironment:
    """Runs tasks on your copies of the sites. The state is on the sites, so a killed episode is re-opened, with the
    requests recorded so far.

    The sites are not reset; that is up to their operator. The seed of a task has no effect.
    """

    restore: Restore = "reopen"

    def __init__(self, chromium: Chromium, context: SuiteContext, folder: Path) -> None:
        self._chromium = chromium
        self._context = context
        self._folder = folder
        self._live: LiveSession | None = None
        self._task: Task | None = None
        self._recorder = Recorder()

    @property
    def session(self) -> BrowserSession:
        return self._started().session

    async def reset(self, task: TaskRef) -> EpisodeStart:
        """Logs in to the task's sites in a fresh context and opens its tabs. Raises ResetFailed, BadInput."""
        start = await self._prepare(task)
        await self._started().start()
        return start

    async def observe(self, *, screenshot: bool = False) -> Observation:
        return await self._started().observe(screenshot=screenshot)

    async def execute(self, action: Action) -> ActionResult:
        return await self._started().execute(action)

    async def done(self) -> bool:
        """Always False: the checks run once, after the agent has stopped."""
        return False

    async def score(self, answer: str | None) -> Score | None:
        """Success if every check of the task passes. Broken if the sites or the judge gave no evidence."""
        assert self._task is not None, "reset comes first"
        try:
            findings = await self._findings(self._task, answer)
        except EnvError as error:
            return Score(status="broken", reward=0.0, evidence=f"not checked: {error}")
        met = all(finding.met for finding in findings)
        reported = findings if met else [finding for finding in findings if not finding.met]
        rules = "by the original's rules: " if self._context.strict_original else ""
        evidence = rules + "; ".join(finding.why for finding in reported)
        return Score(status="success" if met else "failure", reward=float(met), evidence=evidence)

    async def check_milestones(self) -> tuple[MilestoneCheck, ...] | None:
        return None

    async def save_state(self, folder: Path) -> None:
        """Writes tabs, cookies, local storage and the recorded requests if they have changed."""
        await self._started().save(folder)
        self._recorder.save(folder)

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        """Reopens the saved tabs with their cookies; without a saved state, opens the start. Raises ResetFailed."""
        start = await self._prepare(task)
        self._recorder.load(folder)
        await self._started().reopen(folder)
        return start

    async def close(self) -> None:
        if self._live is not None:
            await self._live.close()
            self._live = None

    async def _prepare(self, ref: TaskRef) -> EpisodeStart:
        """Prepares an episode of *ref*, except for its session."""
        task = self._context.task(ref)
        await self.close()
        self._task = task
        # Responses are read only if a check uses them, because they take two more calls for each request.
        self._recorder = Recorder(with_answers=any(isinstance(check, RequestSent) for check in task.checks))
        bounds = Bounds(self._folder, self._settings(task), self._context.origins)
        self._live = LiveSession(self._chromium, bounds, self._begin, self._watch)
        return EpisodeStart(instruction=instruction(task), category=category(task))

    def _settings(self, task: Task) -> SessionSettings:
        state = self._context.accounts.stored(task.sites, self._folder)
        settings = self._context.settings
        return settings if state is None else settings.model_copy(update={"storage_state": state})

    async def _begin(self, live: LiveSession) -> None:
        assert self._task is not None, "the session belongs to a task"
        context, task = self._context, self._task
        if context.accounts.states is None:
            for site in dict.fromkeys(task.sites):
                if site in FORMS:
                    await context.accounts.log_in(live.session.page, site, context.sites)
        self._watch(live.session)
        await live.go_to([context.sites.fill(url) for url in task.start_urls])

    def _watch(self, session: BrowserSession) -> None:
        """Starts recording the session's requests, after the login, whose data contain a password."""
        self._recorder.attach(session.context)

    async def _findings(self, task: Task, answer: str | None) -> list[Finding]:
        """Runs the checks until one fails. Raises EnvError if a check could not be made."""
        live = self._started()
        await live.revive()
        pages = Pages(live.session, self._context.wait_s)
        await pages.unblock()
        evidence = Evidence(
            intent=task.intent,
            answer=answer,
            url=live.session.url,
            pages=pages,
            sent=await self._recorder.all(),
            sites=self._context.sites,
            origins=self._context.origins,
            admin=self._context.accounts.accounts["shopping_admin"],
            judge=self._context.judge,
            task_sites=task.sites,
        )
        findings: list[Finding] = []
        for check in in_cheap_order(task.checks):
            findings.append(await evaluate(check, evidence, original=self._context.strict_original))
            if not findings[-1].met:
                break
        return findings

    def _started(self) -> LiveSession:
        if self._live is None:
            raise ResetFailed("the task was not started: call reset first")
        return self._live


def instruction(task: Task) -> str:
    """The intent of the task and the expected format of the answer."""
    typed = any(isinstance(check, AgentResponse) for check in task.checks)
    return " ".join(f"{task.intent} {ANSWER_FORMAT if typed else NOT_ACHIEVABLE_HINT}".split())
