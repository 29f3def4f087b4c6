"""One worker's WebArena: a session that is logged in to the task's sites, and the task's checks at its end."""

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
from envs.suites.webarena.sent import Recorder
from envs.suites.webarena.sites import Sites, category
from envs.suites.webarena.task import AgentResponse, RequestSent, Task

NOT_ACHIEVABLE_HINT = (
    "If this cannot be done, answer exactly N/A and nothing else; "
    "the reason belongs in a comment before that action (# Note: the reason)."
)
"""Some tasks compare the whole answer with `N/A`, so a reason in it would fail them."""


@dataclass(frozen=True, slots=True)
class World:
    """What all environments of a suite share."""

    tasks: Mapping[str, Task]
    sites: Sites
    origins: Origins
    """What an episode may reach."""
    accounts: Accounts
    judge: FuzzyJudge
    strict_original: bool
    """Score by the benchmark's own rules, see :mod:`envs.suites.webarena.evaluators.original`."""
    settings: SessionSettings
    wait_s: float
    """How long a check waits for an element that a page draws late."""

    def task(self, ref: TaskRef) -> Task:
        """Raises BadInput for a task that is not known, or whose sites are not."""
        if ref.name not in self.tasks:
            raise BadInput(f"{ref.suite} has no task {ref.name!r}")
        task = self.tasks[ref.name]
        self.sites.require(task)
        return task


class WebArenaEnvironment:
    """The state lives on the sites, so a killed episode is re-opened; the requests made so far come back with it.

    The sites themselves are not reset: that is for whoever runs them. The seed of a task means nothing here.
    """

    restore: Restore = "reopen"

    def __init__(self, chromium: Chromium, world: World, folder: Path) -> None:
        self._chromium = chromium
        self._world = world
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
        """Never: the checks run once, after the agent has stopped."""
        return False

    async def score(self, answer: str | None) -> Score | None:
        """Success if every check of the task is met. Broken where the sites or the judge gave no evidence."""
        assert self._task is not None, "reset comes first"
        try:
            findings = await self._findings(self._task, answer)
        except EnvError as error:
            return Score(status="broken", reward=0.0, evidence=f"not checked: {error}")
        met = all(finding.met for finding in findings)
        told = findings if met else [finding for finding in findings if not finding.met]
        rules = "by the original's rules: " if self._world.strict_original else ""
        evidence = rules + "; ".join(finding.why for finding in told)
        return Score(status="success" if met else "failure", reward=float(met), evidence=evidence)

    async def check_milestones(self) -> tuple[MilestoneCheck, ...] | None:
        return None

    async def save_state(self, folder: Path) -> None:
        """Writes tabs, cookies, local storage and the requests made so far, where they have changed."""
        await self._started().save(folder)
        self._recorder.save(folder)

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        """Opens the saved tabs again with their cookies; the start, if nothing was saved. Raises ResetFailed."""
        start = await self._prepare(task)
        self._recorder.load(folder)
        await self._started().reopen(folder)
        return start

    async def close(self) -> None:
        if self._live is not None:
            await self._live.close()
            self._live = None

    async def _prepare(self, ref: TaskRef) -> EpisodeStart:
        """Everything for an episode of *ref* but the session itself."""
        task = self._world.task(ref)
        await self.close()
        self._task = task
        # Answers are read only where a check looks at them: it takes two more calls for each request.
        self._recorder = Recorder(with_answers=any(isinstance(check, RequestSent) for check in task.checks))
        bounds = Bounds(self._folder, self._settings(task), self._world.origins)
        self._live = LiveSession(self._chromium, bounds, self._begin, self._watch)
        return EpisodeStart(instruction=instruction(task), category=category(task))

    def _settings(self, task: Task) -> SessionSettings:
        state = self._world.accounts.stored(task.sites, self._folder)
        settings = self._world.settings
        return settings if state is None else settings.model_copy(update={"storage_state": state})

    async def _begin(self, live: LiveSession) -> None:
        assert self._task is not None, "the session belongs to a task"
        world, task = self._world, self._task
        if world.accounts.states is None:
            for site in dict.fromkeys(task.sites):
                if site in FORMS:
                    await world.accounts.log_in(live.session.page, site, world.sites)
        self._watch(live.session)
        await live.go_to([world.sites.fill(url) for url in task.start_urls])

    def _watch(self, session: BrowserSession) -> None:
        """From here on the session's requests are on record: not the login's, whose data are a password."""
        self._recorder.attach(session.context)

    async def _findings(self, task: Task, answer: str | None) -> list[Finding]:
        """Up to the first check that is not met. Raises EnvError where a check could not be made."""
        live = self._started()
        await live.revive()
        pages = Pages(live.session, self._world.wait_s)
        await pages.unblock()
        evidence = Evidence(
            intent=task.intent,
            answer=answer,
            url=live.session.url,
            pages=pages,
            sent=await self._recorder.all(),
            sites=self._world.sites,
            origins=self._world.origins,
            admin=self._world.accounts.accounts["shopping_admin"],
            judge=self._world.judge,
            task_sites=task.sites,
        )
        findings: list[Finding] = []
        for check in in_cheap_order(task.checks):
            findings.append(await evaluate(check, evidence, original=self._world.strict_original))
            if not findings[-1].met:
                break
        return findings

    def _started(self) -> LiveSession:
        if self._live is None:
            raise ResetFailed("the task was not started: call reset first")
        return self._live


def instruction(task: Task) -> str:
    """The intent, and how the benchmark expects to be answered."""
    typed = any(isinstance(check, AgentResponse) for check in task.checks)
    return " ".join(f"{task.intent} {ANSWER_FORMAT if typed else NOT_ACHIEVABLE_HINT}".split())
