"""One worker's MiniWoB++ environment: one page in one browser session, for consecutive episodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envs.browser.action_replay import replay_actions
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
    """Runs episodes in *session*. The state is in the page, so a killed episode is replayed from its seed."""

    restore: Restore = "replay"

    def __init__(self, session: BrowserSession, server: PageServer) -> None:
        self._session = session
        self._server = server
        self._harness: Harness | None = None
        self._tracker: Tracker | None = None
        self._state: PageState | None = None
        """The state last read; None if the page of the episode is gone."""
        self._is_current = False
        self._page_failure = ""
        """Why the page died in this episode; empty if it did not."""

    @property
    def session(self) -> BrowserSession:
        return self._session

    async def reset(self, task: TaskRef) -> EpisodeStart:
        """Restarts the page for the task's seed. Other tabs of the previous episode are closed, and a page that died in
        it is replaced once."""
        self._session.holding.restart()
        self._session.effects.restart()
        for tab in self._session.tabs.others:
            self._session.dialogs.forget(tab.page)
            await self._session.tabs.close(tab)
        try:
            instruction, state = await self._start(task)
        except ResetFailed:
            await self._session.observe()  # the session replaces a page that has crashed or hangs
            instruction, state = await self._start(task)
        self._tracker = Tracker(MILESTONES.get(task.name, ()), instruction, state)
        self._is_current, self._state, self._page_failure = True, state, ""
        return EpisodeStart(instruction=instruction, category=category(task.name), milestones=self._tracker.milestones)

    async def observe(self, *, screenshot: bool = False) -> Observation:
        return await self._session.observe(screenshot=screenshot)

    async def execute(self, action: Action) -> ActionResult:
        ended = self._state is not None and self._state.done
        result = await self._session.execute(action)
        if result.status in (Status.CRASHED, Status.TIMEOUT):
            self._page_failure = f"{action.kind} ended as {result.status}: {result.message}"
        if not ended:
            self._is_current = False
            if self._tracker is not None and self._tracker.milestones:
                await self.check_milestones()  # a lasting milestone must be checked while its page is shown
        return result

    async def done(self) -> bool:
        """True if the benchmark has ended the episode or its page is gone."""
        state = await self._read_state()
        return state is None or state.done

    async def score(self, answer: str | None) -> Score | None:
        """The benchmark's score. Success is the full reward; a partial reward is a failure and is recorded."""
        state = await self._read_state()
        if state is None and self._page_failure:
            return Score(status="broken", reward=0.0, evidence=f"the task page is gone: {self._page_failure}")
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
        return self._tracker.check(await self._read_state())

    async def save_state(self, folder: Path) -> None:
        """Does nothing: the state is the seed and the committed actions."""

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        return await replay_actions(self, task, committed)

    async def save_playwright_trace(self, path: Path) -> bool:
        return await self._session.save_playwright_trace(path)

    async def close(self) -> None:
        """Closes the session and its proxy."""
        await self._session.close()
        await self._session.boundary.close()

    async def _start(self, task: TaskRef) -> tuple[str, PageState]:
        page = self._session.page
        if self._harness is None or self._harness.page is not page:
            self._harness = Harness(page, self._server)
        instruction = await self._harness.start(task.name, task.seed)
        state = await self._harness.state()
        if state is None:
            raise ResetFailed(f"{task.id}: the page was gone as soon as it had started")
        await page.mouse.move(0, 0)  # where it rests in a new page: a hover changes how a control looks
        await self._session.forget_appearances()
        return instruction, state

    async def _read_state(self) -> PageState | None:
        """The state of the page, read at most once after each action and not after the end of the episode."""
        if not self._is_current:
            gone = self._harness is None or self._session.page is not self._harness.page
            self._state = None if gone or self._harness is None else await self._harness.state()
            self._is_current = True
        return self._state
