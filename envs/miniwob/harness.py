"""MiniWoB++'s own start and score, called in the task page.

The task page is the benchmark's checker and part of the trusted base: it is a file of the installed package, served
from loopback, and no other origin can be reached from it. The policy's actions reach it only as mouse and keyboard
input, so it cannot call `core.endEpisode` by itself. This is the one suite where a verdict comes out of a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, TypeVar

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from envs.errors import PageHung, ResetFailed
from envs.miniwob.pages import PageServer
from envs.miniwob.state import LIMITS, SNAPSHOT_JS, PageState
from envs.record import storable

T = TypeVar("T")

HIDDEN = "#query, #reward-display, #sync-task-cover, #click-canvas"
"""The benchmark's own furniture: the goal (given as the instruction) and its timers. Not shown to a policy."""

EPISODE_MS = 1_000_000
"""The page's own time limit, 10 s by default; the run's limits are the ones that count here."""

HARD_RESET = frozenset({"form-sequence-2"})
"""Tasks whose page keeps something from one episode to the next: they are loaded anew every time."""

_START_JS = """
async ([seed, limit, wait]) => {
  document.activeElement?.blur?.();
  window.scrollTo(0, 0);
  Math.seedrandom(seed);
  core.EPISODE_MAX_TIME = limit;
  core.startEpisodeReal();
  const until = performance.now() + wait;
  while (!WOB_TASK_READY) {
    if (performance.now() > until) return null;
    await new Promise(next => setTimeout(next, 2));
  }
  const said = core.getUtterance();
  return typeof said === 'string' ? said : said.utterance;
}
"""

_ENDING_JS = """
() => typeof WOB_DONE_GLOBAL === 'undefined'
  ? [false, 0, null] : [WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL, WOB_REWARD_REASON && String(WOB_REWARD_REASON)]
"""


@dataclass(frozen=True, slots=True)
class Ending:
    """What the benchmark says of the episode."""

    done: bool
    reward: float
    """-1 to 1, without the time penalty; 0 while it is running."""
    reason: str | None


class Harness:
    """Starts episodes on one page and reads how they ended. Every call is bounded by `timeout_s`."""

    def __init__(self, page: Page, server: PageServer, *, timeout_s: float = 10.0) -> None:
        self.page = page
        self._server = server
        self._timeout_s = timeout_s
        self._loaded: str | None = None

    async def start(self, name: str, seed: int, *, reload: bool = False) -> str:
        """Starts episode `seed` of task `name` and returns its instruction, one line.

        The page is loaded only when it shows another task, has been left, or keeps state between episodes; else the
        benchmark's own restart is used, which takes milliseconds. Raises ResetFailed.
        """
        url = self._server.task_url(name)
        if reload or name in HARD_RESET or self._loaded != name or self.page.url.split("#")[0] != url:
            self._loaded = None
            await self._load(url)
            self._loaded = name
        said = await self._call(_START_JS, [seed, EPISODE_MS, self._timeout_s * 500])
        if not isinstance(said, str) or not said.strip():
            raise ResetFailed(f"miniwob/{name} seed {seed}: the page was not ready within {self._timeout_s / 2:g} s")
        return storable(" ".join(said.split()))

    async def ending(self) -> Ending:
        done, reward, reason = await self._call(_ENDING_JS)
        return Ending(bool(done), float(reward or 0.0), None if reason is None else storable(reason))

    async def state(self) -> PageState:
        """The small typed picture that milestone checkers judge."""
        return PageState.parse(await self._call(SNAPSHOT_JS, list(LIMITS)))

    async def _load(self, url: str) -> None:
        try:
            await self.page.goto(url, wait_until="load", timeout=self._timeout_s * 1000)
        except PlaywrightError as error:
            raise ResetFailed(f"{url} did not load: {error.message.splitlines()[0]}") from error

    async def _call(self, script: str, argument: object = None) -> Any:
        try:
            return await self._bounded(self.page.evaluate(script, argument))
        except PlaywrightError as error:
            raise ResetFailed(f"{self.page.url}: {error.message.splitlines()[0]}") from error

    async def _bounded(self, call: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(call, self._timeout_s)
        except TimeoutError as error:
            raise PageHung(f"{self.page.url} did not answer within {self._timeout_s:g} s") from error
