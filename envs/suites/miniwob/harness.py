"""Calls MiniWoB++'s own start and score functions in the task page.

The task page is the benchmark's checker and part of the trusted base: it is a file of the installed package, is served
from loopback, and can access no other origin. The policy's actions reach it only as mouse and keyboard input, and
markup typed into a page does not run as script (:mod:`envs.suites.miniwob.content_policy`), so a policy cannot call
`core.endEpisode`. This is the only suite whose score comes from a page.
"""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import Any, Final

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from envs.core.errors import ResetFailed
from envs.core.record import storable
from envs.suites.miniwob.pages import PageServer
from envs.suites.miniwob.state import LIMITS, SNAPSHOT_JS, PageState

HIDDEN = "#query, #reward-display, #sync-task-cover, #click-canvas"
"""The benchmark's own elements: the goal (available as the instruction) and its timers. Not shown to a policy."""

TIMEOUT_S: Final = 10.0
EPISODE_MS = 2_000_000_000
"""The page's own time limit, 10 s by default. It is about the largest that a browser's timer takes (23 days): the run's
limits apply, and a page that ended an episode of a slow model would make it a failure."""

HARD_RESET = frozenset({"choose-date", "choose-date-easy", "choose-date-medium", "form-sequence-2"})
"""Tasks whose pages keep state between episodes (the month of a calendar, a radio button): they are reloaded each
time."""

# Text typed in the previous episode may name an element `activeElement`, so it is read by the prototype's getter.
# A click on the cover that the page shows after an episode would start another one, which only a reset may do.
_START_JS = r"""
async ([seed, episode, limit, wait, fresh]) => {
  const active = Object.getOwnPropertyDescriptor(Document.prototype, 'activeElement').get.call(document);
  if (active instanceof HTMLElement) HTMLElement.prototype.blur.call(active);
  window.scrollTo(0, 0);
  Math.seedrandom(seed);
  core.EPISODE_MAX_TIME = limit;
  core.startEpisodeReal();
  core.miraEpisode = episode;
  core.cover_div.onclick = null;
  const until = performance.now() + wait;
  while (!WOB_TASK_READY) {
    if (performance.now() > until) return null;
    await new Promise(next => setTimeout(next, 2));
  }
  if (fresh) {  // an icon without its picture has no size, and is not observed
    const addresses = new Set();
    for (const element of document.querySelectorAll('#area *')) {
      const style = getComputedStyle(element);
      const drawn = `${style.content} ${style.backgroundImage}`;
      for (const [, url] of drawn.matchAll(/url\("([^"]+)"\)/g)) addresses.add(url);
    }
    const pictures = [...addresses].map(url => Object.assign(new Image(), {src: url}));
    const loaded = [...pictures, ...document.images].map(picture => picture.decode().catch(() => null));
    await Promise.race([Promise.all(loaded), new Promise(next => setTimeout(next, wait))]);
    await new Promise(next => requestAnimationFrame(() => setTimeout(next)));
  }
  const goal = core.getUtterance();
  return typeof goal === 'string' ? goal : goal.utterance;
}
"""


class Harness:
    """Starts episodes on one page and reads their state. Every call ends within `TIMEOUT_S`."""

    def __init__(self, page: Page, server: PageServer) -> None:
        self.page = page
        self._server = server
        self._loaded: str | None = None
        self._episode = ""
        """Identifies the running episode in the page. A reload or a restart by the policy loses it."""

    async def start(self, name: str, seed: int) -> str:
        """Starts episode `seed` of task `name` and returns its instruction, one line.

        The page is loaded only if it shows another task, was left, or keeps state between episodes. Otherwise the
        benchmark's own restart is used, which takes milliseconds. Raises ResetFailed.
        """
        url = self._server.task_url(name)
        self._episode = f"{name}/{seed}/{token_hex(8)}"
        try:
            fresh = name in HARD_RESET or self._loaded != name or self.page.url.split("#")[0] != url
            if fresh:
                self._loaded = None
                await self._load(url)
                self._loaded = name
            goal = await self._call(_START_JS, [seed, self._episode, EPISODE_MS, TIMEOUT_S * 250, fresh])
        except PlaywrightError as error:
            self._loaded = None  # a page that does not restart is loaded again
            raise ResetFailed(f"miniwob/{name} seed {seed} did not start: {error.message.splitlines()[0]}") from error
        except TimeoutError as error:
            raise ResetFailed(f"miniwob/{name} seed {seed} did not start within {TIMEOUT_S:g} s") from error
        if not isinstance(goal, str) or not goal.strip():
            raise ResetFailed(f"miniwob/{name} seed {seed}: the page was not ready within {TIMEOUT_S / 4:g} s")
        return storable(" ".join(goal.split()))

    async def state(self) -> PageState | None:
        """The state for milestone checkers and score; None if the page of this episode is gone or hangs."""
        try:
            raw = await self._call(SNAPSHOT_JS, [self._episode, *LIMITS])
        except (PlaywrightError, TimeoutError):
            return None
        return None if raw is None else PageState.parse(raw)

    async def _load(self, url: str) -> None:
        await self.page.goto(url, wait_until="load", timeout=TIMEOUT_S * 1000)

    async def _call(self, script: str, argument: object) -> Any:
        async with asyncio.timeout(TIMEOUT_S):
            return await self.page.evaluate(script, argument)
