"""One worker's BrowserGym environment: BrowserGym sets up and scores tasks, Mira observes and acts on the pages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from playwright.async_api import Browser, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from envs.browser.action_replay import replay_actions
from envs.browser.session import BrowserSession
from envs.core.actions import Action, ActionResult, NewTab, Reason, Status
from envs.core.errors import ResetFailed
from envs.core.observation import Observation
from envs.core.settings import SessionSettings
from envs.core.tasks import EpisodeStart, MilestoneCheck, Restore, Score, TaskRef
from envs.security.allowlist import Origins, origin_of
from envs.security.allowlist_proxy import proxy_of_session
from envs.suites.browsergym.browser import SharedChromium
from envs.suites.browsergym.names import is_rebuilt
from envs.suites.browsergym.process import GymFailed, GymProcess

CATEGORY = "open"
CONNECT_S = 30.0
TAB_S = 10.0
FULL_REWARD = 1.0


class BrowserGymEnvironment:
    """BrowserGym provides reset, reward and end of an episode; Mira provides observations and actions.

    Not supported: BrowserGym's action strings, and messages of a task to the agent after its goal.
    A killed episode is replayed from its seed if a reset restores the state. If a server keeps state, actions are not
    repeated on it, and an episode with actions ends as broken.
    """

    restore: Restore = "replay"

    def __init__(self, folder: Path, settings: SessionSettings, module: str = "") -> None:
        """A task's name is its gymnasium id; *module* is imported to register it."""
        self._folder = folder
        self._settings = settings
        self._module = module
        self._opened = ""
        """The task that is open in BrowserGym's process."""
        self._proxy = proxy_of_session(settings, Origins.parse(settings.allow))
        self._chromium: SharedChromium | None = None
        self._gym: GymProcess | None = None
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._session: BrowserSession | None = None

    @property
    def session(self) -> BrowserSession:
        if self._session is None:
            raise ResetFailed("the task was not started: call reset first")
        return self._session

    async def reset(self, task: TaskRef) -> EpisodeStart:
        """Sets up the task for its seed. Raises ResetFailed, and BadInput without BrowserGym."""
        try:
            return await self._begin(task)
        except (GymFailed, PlaywrightError, TimeoutError) as error:
            await self.close()
            line = next(iter(str(error).splitlines()), "") or type(error).__name__
            raise ResetFailed(f"{task.id}: {line}") from error

    async def observe(self, *, screenshot: bool = False) -> Observation:
        return await self.session.observe(screenshot=screenshot)

    async def execute(self, action: Action) -> ActionResult:
        """Executes *action*. BrowserGym opens new tabs, so that they share the task's cookies."""
        if isinstance(action, NewTab):
            return await self._new_tab()
        return await self.session.execute(action)

    async def done(self) -> bool:
        """Whether BrowserGym ends the episode; validated after each action, as in its own loop."""
        try:
            return bool((await self._process().ask("check"))["done"])
        except GymFailed:
            return True  # the episode cannot continue; the score gives the reason

    async def score(self, answer: str | None) -> Score | None:
        """The reward after the answer, if any, was sent to the chat. Success is the full reward."""
        try:
            request = {"do": "say", "text": answer} if answer is not None else {"do": "check"}
            reward = float((await self._process().ask(**request))["reward"])
        except GymFailed as error:
            return Score(status="broken", reward=0.0, evidence=f"no reward: {error}")
        return Score(
            status="success" if reward >= FULL_REWARD else "failure",
            reward=max(0.0, min(1.0, reward)),
            evidence=f"BrowserGym's reward is {reward:g}",
        )

    async def check_milestones(self) -> tuple[MilestoneCheck, ...] | None:
        return None

    async def save_state(self, folder: Path) -> None:
        """Does nothing: the state is the seed and the committed actions."""

    async def restore_state(self, task: TaskRef, folder: Path, committed: Sequence[Action]) -> EpisodeStart:
        if committed and not is_rebuilt(self._module, task.name):
            raise ResetFailed(f"{task.id}: its server keeps the effects of actions, so they are not repeated")
        return await replay_actions(self, task, committed)

    async def close(self) -> None:
        """Ends BrowserGym's process, the browser, and the connections to them."""
        await self._disconnect()
        if self._gym is not None:
            await self._gym.end()
        if self._chromium is not None:
            await self._chromium.end()
        if self._playwright is not None:
            await self._playwright.stop()
        self._gym = self._chromium = self._playwright = None
        self._opened = ""
        await self._proxy.close()

    async def _begin(self, task: TaskRef) -> EpisodeStart:
        if self._gym is None or self._chromium is None:
            self._gym, self._chromium = await self._start()
        await self._disconnect()
        if self._opened != task.name:
            name = f"{self._module}:{task.name}" if self._module else task.name
            await self._process().ask("open", environment=name, endpoint=self._chromium.endpoint)
            self._opened = task.name
        answer = await self._process().ask("reset", seed=task.seed)
        url = str(answer["url"])
        if url.startswith("http") and not self._proxy.allows(url):
            raise GymFailed(f"the task begins on {origin_of(url)}, which this run may not access: use --allow")
        await self._connect(url)
        instruction = " ".join(str(answer["goal"]).split()) or "Do what the page asks for."
        return EpisodeStart(instruction=instruction, category=CATEGORY)

    async def _start(self) -> tuple[GymProcess, SharedChromium]:
        """Starts the browser, then BrowserGym, which connects to it."""
        await self._proxy.start()
        self._chromium = await SharedChromium.start(self._proxy)
        async with asyncio.timeout(CONNECT_S):
            self._playwright = await async_playwright().start()
        return await GymProcess.start(self._folder / "browsergym.log"), self._chromium

    async def _connect(self, url: str) -> None:
        """Creates a session for the pages that the task has opened, with the page at *url* in front."""
        assert self._playwright is not None and self._chromium is not None, "both were started"
        async with asyncio.timeout(CONNECT_S):
            self._browser = await self._playwright.chromium.connect_over_cdp(self._chromium.endpoint)
        # Over this protocol, pages of BrowserGym's context belong to the default context.
        context = self._browser.contexts[0]
        self._session = BrowserSession(context, self._settings, self._proxy, self._folder)
        for page in context.pages:
            self._session.tabs.arrived(page)
        front = [tab for tab in self._session.tabs.all if tab.page.url == url]
        if not front:
            raise GymFailed(f"the browser has no tab with the task's page {url}")
        self._session.tabs.focus(front[-1])

    async def _disconnect(self) -> None:
        """Disconnects without closing the pages, which belong to BrowserGym."""
        session, self._session = self._session, None
        browser, self._browser = self._browser, None
        if session is not None:
            await session.downloads.close(self._settings.download_wait_s)
        if browser is not None:
            try:
                async with asyncio.timeout(TAB_S):
                    await browser.close()
            except (PlaywrightError, TimeoutError):
                return  # the browser has died: there is nothing to disconnect

    async def _new_tab(self) -> ActionResult:
        tabs = self.session.tabs
        before, opened = tabs.windows.count, tabs.opened
        try:
            await self._process().ask("new_tab")
        except GymFailed as error:
            return ActionResult(status=Status.FAILED, reason=Reason.BROWSER_ERROR, message=str(error))
        await tabs.windows.until(before + 1, TAB_S)
        status = Status.OK if tabs.opened > opened else Status.TIMEOUT
        return ActionResult(status=status, url=self.session.url)

    def _process(self) -> GymProcess:
        if self._gym is None:
            raise GymFailed("BrowserGym's process was ended")
        return self._gym
