"""The suite `open`: one open task on a live website, with an instruction and an address.

`mira run "…" --url …` uses it without a checker; a program can give it one (`examples/custom_checker.py`). The state is
on the server, so a killed episode is *re-opened*, see :mod:`envs.browser.live_session`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from envs.browser.chromium import Chromium
from envs.browser.live_session import Bounds, LiveSession
from envs.browser.session import BrowserSession
from envs.core.actions import Action, ActionResult
from envs.core.errors import BadInput
from envs.core.observation import Observation
from envs.core.settings import SessionSettings
from envs.core.tasks import Environment, EpisodeStart, MilestoneCheck, Restore, Score, TaskInfo, TaskRef
from envs.security.allowlist import Origins
from envs.security.secrets import NO_SECRETS, SecretVault

__all__ = ["SUITE", "TASK", "OpenEnvironment", "OpenTask", "OpenTaskSuite"]

SUITE = "open"
TASK = "task"
Checker = Callable[[str | None, Environment], Awaitable[Score]]
"""Scores an ended episode from the agent's answer (None: it gave none) and the environment, whose page can be observed.
A page can say anything, so a checker decides from state that the page cannot forge: a database, an API, a log. An
exception that it raises breaks the episode."""


@dataclass(frozen=True, slots=True)
class OpenTask:
    """Instruction, start address, limits and checker of an open task."""

    instruction: str
    url: str
    bounds: Bounds
    checker: Checker | None = None


class OpenTaskSuite:
    """The suite of one open task."""

    name = SUITE

    def __init__(
        self,
        chromium: Chromium,
        folder: Path,
        settings: SessionSettings,
        *,
        instruction: str,
        url: str,
        vault: SecretVault = NO_SECRETS,
        checker: Checker | None = None,
    ) -> None:
        """Allows the rules of `settings.allow` and the origin of *url*. Without *checker* the run's outcome judge
        decides. Raises BadInput."""
        plain = " ".join(instruction.split())
        if not plain:
            raise BadInput("the task has no instruction: describe the task in words")
        self._chromium = chromium
        bounds = Bounds(folder, settings, Origins.parse(settings.allow).with_url(url), vault)
        self._task = OpenTask(plain, url, bounds, checker)

    def tasks(self) -> Sequence[TaskInfo]:
        return (TaskInfo(name=TASK, category=SUITE, has_checker=self._task.checker is not None),)

    async def environment(self) -> OpenEnvironment:
        return OpenEnvironment(self._chromium, self._task)

    async def close(self) -> None:
        """Does nothing: each environment closes its own resources."""


class OpenEnvironment:
    """Runs the task in one browser session with its own allowlist proxy."""

    restore: Restore = "reopen"

    def __init__(self, chromium: Chromium, task: OpenTask) -> None:
        self._start = EpisodeStart(instruction=task.instruction, category=SUITE)
        self._checker = task.checker
        self._live = LiveSession(chromium, task.bounds, lambda live: live.go_to([task.url]))

    @property
    def session(self) -> BrowserSession:
        return self._live.session

    async def reset(self, task: TaskRef) -> EpisodeStart:
        """Opens the task's address in a fresh context. Raises ResetFailed."""
        await self._live.start()
        return self._start

    async def observe(self, *, screenshot: bool = False) -> Observation:
        """Observes the page; a browser that died is restarted at the last saved state."""
        return await self._live.observe(screenshot=screenshot)

    async def execute(self, action: Action) -> ActionResult:
        return await self._live.execute(action)

    async def done(self) -> bool:
        """Always False: only the agent ends an open task."""
        return False

    async def score(self, answer: str | None) -> Score | None:
        """The checker's score; None without a checker: then the outcome judge decides."""
        return None if self._checker is None else await self._checker(answer, self)

    async def check_milestones(self) -> tuple[MilestoneCheck, ...] | None:
        return None

    async def save_state(self, folder: Path) -> None:
        """Writes tabs, cookies and local storage if they have changed."""
        await self._live.save(folder)

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        """Reopens the saved tabs with their storage; without a saved state, opens the start. Raises ResetFailed."""
        await self._live.reopen(folder)
        return self._start

    async def save_playwright_trace(self, path: Path) -> bool:
        return await self.session.save_playwright_trace(path)

    async def close(self) -> None:
        await self._live.close()
