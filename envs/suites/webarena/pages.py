"""Reads pages for checks, in the agent's session (with its cookies), an isolated script world and time limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from playwright.async_api import Error as PlaywrightError

from envs.browser.session import BrowserSession
from envs.browser.settle import settle
from envs.browser.tabs import OpenTab
from envs.core.actions import AnswerDialog
from envs.core.errors import EnvError
from envs.core.record import storable
from envs.suites.webarena.json_text import load_json
from envs.suites.webarena.task import LastPage, Script, WholePage

OPEN_S = 60.0
READ_S = 10.0
FETCH_S = 30.0
POLL_S = 0.1

# The scripts are in `envs/observer/in_page/reading.js`, where each is described.
_WHOLE = "() => mira.wholePage()"
_SOURCE = "() => mira.pageSource()"

_EXPRESSION = """() => {
  let value;
  try { value = (%s); } catch { return ''; }
  return value === null || value === undefined ? '' : String(value).slice(0, 1000000);
}"""

# The value as JSON; '' if there is none or the expression fails.
_VALUE = """() => {
  let value;
  try { value = (%s); } catch { return ''; }
  if (value instanceof Node) return '"ref: <Node>"';
  const text = JSON.stringify(value) ?? 'null';
  return text.length > 1000000 ? JSON.stringify(text.slice(0, 1000000)) : text;
}"""


class CheckBroken(EnvError):
    """A check could not read a page. The episode's score is *broken*, not failed."""


class Pages:
    """Reads pages in an episode's session after the agent has stopped."""

    def __init__(self, session: BrowserSession, wait_s: float = 3.0) -> None:
        """*wait_s*: how long to wait for an element that appears late."""
        self._session = session
        self._wait_s = wait_s
        self.last = session.tabs.front

    async def unblock(self) -> None:
        """Dismisses a dialog that the agent left open, because it blocks reading the page."""
        while self._session.dialogs.open is not None:
            if not (await self._session.execute(AnswerDialog(accept=False))).ok:
                return

    @asynccontextmanager
    async def at(self, where: str | LastPage) -> AsyncGenerator[OpenTab]:
        """A tab that shows *where*: the agent's last page unchanged, or an address in a new tab.

        Raises CheckBroken if the site does not answer or answers 5xx.
        """
        if isinstance(where, LastPage):
            yield self.last
            return
        try:
            tab = await self._session.tabs.open(OPEN_S)
        except (PlaywrightError, TimeoutError) as error:
            raise CheckBroken(f"no tab could be opened for the check: {_line(error)}") from error
        try:
            await self._load(tab, where)
            yield tab
        finally:
            await self._session.tabs.close(tab)
            self._session.tabs.focus(self.last)

    async def text(self, tab: OpenTab, what: WholePage | Script) -> str:
        """The text that *what* selects; empty if the page has no such element. Raises CheckBroken."""
        if isinstance(what, WholePage):
            return await self._call(tab, _WHOLE)
        for step in what.prepare:
            await self._call(tab, _EXPRESSION % step)
        return await self._until_there(tab, _EXPRESSION % what.expression)

    async def raw_text(self, tab: OpenTab, what: WholePage | Script) -> str:
        """The text as the benchmark's own harness reads it: the page's source, and values formatted by Python."""
        if isinstance(what, WholePage):
            return await self._call(tab, _SOURCE)
        for step in what.prepare:
            await self._call(tab, _EXPRESSION % step)
        text = await self._until_there(tab, _VALUE % what.expression)
        try:
            return str(load_json(text)) if text else ""
        except ValueError:
            return text

    async def call(self, tab: OpenTab, function: str, argument: str) -> str:
        """The text that an own function returns for *argument*; waits like :meth:`text`. Raises CheckBroken."""
        return await self._until_there(tab, function, argument)

    async def fetch_json(
        self,
        method: Literal["GET", "POST"],
        url: str,
        *,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The JSON at *url*, requested through the session's allowlist proxy. Raises CheckBroken."""
        try:
            async with asyncio.timeout(FETCH_S):
                answer = await self._session.context.request.fetch(
                    url,
                    method=method,
                    data=dict(data) if data is not None else None,
                    headers=dict(headers or {}),
                    max_redirects=5,
                    timeout=FETCH_S * 1000,
                )
                if not answer.ok:
                    raise CheckBroken(f"{url} answered {answer.status}")
                return await answer.json()
        except (PlaywrightError, TimeoutError, ValueError) as error:
            raise CheckBroken(f"{url} gave no JSON: {_line(error)}") from error

    async def _load(self, tab: OpenTab, url: str) -> None:
        try:
            async with asyncio.timeout(OPEN_S):
                answer = await tab.page.goto(url, timeout=OPEN_S * 1000)
                await settle(tab.page, tab.world, self._session.traffic, self._session.settings.settle)
        except (PlaywrightError, TimeoutError) as error:
            raise CheckBroken(f"{url} could not be opened for the check: {_line(error)}") from error
        if answer is not None and answer.status >= 500:
            raise CheckBroken(f"{url} answered {answer.status} to the check")

    async def _until_there(self, tab: OpenTab, function: str, *arguments: str) -> str:
        deadline = time.monotonic() + self._wait_s
        while True:
            text = await self._call(tab, function, *arguments)
            if text or time.monotonic() > deadline:
                return text
            await asyncio.sleep(POLL_S)

    async def _call(self, tab: OpenTab, function: str, *arguments: str) -> str:
        try:
            async with asyncio.timeout(READ_S):
                return storable(str(await tab.world.call(function, *arguments)))
        except (PlaywrightError, TimeoutError) as error:
            raise CheckBroken(f"{tab.page.url} could not be read for the check: {_line(error)}") from error


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or "no answer in time"
