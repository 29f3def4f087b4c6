"""One worker's MiniWoB++: a single page in one browser session, played one episode after another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envs.browser.action_replay import redo
from envs.browser.session import BrowserSession
from envs.core.actions import Action, ActionResult, Status
from envs.core.errors import ResetFailed
from envs.core.observation import Observation
from envs.core.tasks import EpisodeStart, MilestoneCheck, Restore, Score, TaskRef
from envs.suites.miniwob.catalog import category
from envs.suites.miniwob.harness import Harness
from envs.suites.miniwob.milestones import MILESTONES, Tracker
from envs.suites.miniwob.pages import PageServer
from envs.suites.miniwob.state import PageState


class MiniwobEnvironment:
    """Plays episodes in *session*. The state lives in the page, so a killed episode is replayed from its seed."""

    restore: Restore = "replay"

    def __init__(self, session: BrowserSession, server: PageServer) -> None:
        self._session = session
        self._server = server
        self._harness: Harness | None = None
        self._tracker: Tracker | None = None
        self._state: PageState | None = None
        """The last look; None if the page of the episode is gone."""
        self._look_taken = False
        self._hurt = ""
        """What the page died of, if it died in this episode."""

    @property
    def session(self) -> BrowserSession:
        return self._session

    async def reset(self, task: TaskRef) -> EpisodeStart:
        """Restarts the page for the task's seed. A page that died in the episode before is replaced once."""
        self._session.holding.restart()
        try:
            instruction, state = await self._start(task)
        except ResetFailed:
            await self._session.observe()  # the session replaces a page that has crashed or hangs
            instruction, state = await self._start(task)
        self._tracker = Tracker(MILESTONES.get(task.name, ()), instruction, state)
        self._look_taken, self._state, self._hurt = True, state, ""
        return EpisodeStart(instruction=instruction, category=category(task.name), milestones=self._tracker.milestones)

    async def observe(self, *, screenshot: bool = False) -> Observation:
        return await self._session.observe(screenshot=screenshot)

    async def execute(self, action: Action) -> ActionResult:
        ended = self._state is not None and self._state.done
        result = await self._session.execute(action)
        if result.status in (Status.CRASHED, Status.TIMEOUT):
            self._hurt = f"{action.kind} ended as {result.status}: {result.message}"
        if not ended:
            self._look_taken = False
            if self._tracker is not None and self._tracker.milestones:
                await self.check_milestones()  # a lasting milestone must be seen while its page is up
        return result

    async def done(self) -> bool:
        """True once the benchmark has ended the episode, or its page is gone."""
        state = await self._look()
        return state is None or state.done

    async def score(self, answer: str | None) -> Score | None:
        """The benchmark's verdict. Success is the full reward: partial rewards count as failure and are kept."""
        state = await self._look()
        if state is None and self._hurt:
            return Score(status="broken", reward=0.0, evidence=f"the task page is gone: {self._hurt}")
        if state is None:
            return Score(status="failure", reward=0.0, evidence="the policy left the task page")
        if not state.done:
            return Score(status="failure", reward=0.0, evidence="the benchmark has not ended the episode")
        reason = f": {state.reason}" if state.reason else ""
        return Score(
            status="success" if state.won else "failure",
            reward=max(0.0, min(1.0, state.reward)),
            evidence=f"raw reward {state.reward:g}{reason}",
        )

    async def check_milestones(self) -> tuple[MilestoneCheck, ...] | None:
        if self._tracker is None or not self._tracker.milestones:
            return None
        return self._tracker.check(await self._look())

    async def save_state(self, folder: Path) -> None:
        """Nothing is kept: the seed and the committed actions are the state."""

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        return await redo(self, task, committed)

    async def save_playwright_trace(self, path: Path) -> bool:
        return await self._session.save_playwright_trace(path)

    async def close(self) -> None:
        await self._session.close()

    async def _start(self, task: TaskRef) -> tuple[str, PageState]:
        page = self._session.page
        if self._harness is None or self._harness.page is not page:
            self._harness = Harness(page, self._server)
        instruction = await self._harness.start(task.name, task.seed)
        state = await self._harness.state()
        if state is None:
            raise ResetFailed(f"{task.id}: the page was gone as soon as it had started")
        return instruction, state

    async def _look(self) -> PageState | None:
        """The state of the page, read at most once after an action; kept once the episode has ended."""
        if not self._look_taken:
            gone = self._harness is None or self._session.page is not self._harness.page
            self._state = None if gone or self._harness is None else await self._harness.state()
            self._look_taken = True
        return self._state
