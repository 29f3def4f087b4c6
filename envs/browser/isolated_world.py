"""Calls into a page from a script world of our own, where the page cannot replace the built-ins.

Chromium gives such a world its own pristine `Object`, `Promise`, `setTimeout`, `MutationObserver`; it shares only the
DOM with the page. That is read by the calls of `mira.` (`envs/observer/in_page/*.js`), where no element that a page
names after a property of the DOM shadows it. None of these calls is bounded by itself: callers bound them.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from playwright.async_api import CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from envs.observer.program import program

WORLD = "mira-settle"
_PROGRAM = program(
    ("settling.js", "scrolling.js", "reading.js"),
    "untilQuiet, firstChange, firstSuggestion, scrollPage, wholePage, pageSource",
)
NO_CONTEXT = "Cannot find context"
"""Chromium's words for a world that went away with its document: the call was not begun."""


class Isolated:
    """The isolated world of a page's top document, made anew after each navigation."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._cdp: CDPSession | None = None
        self._opening = asyncio.Lock()
        self._frame = ""
        self._context: int | None = None
        self._holds_program = False
        """The context has the calls of `mira.`."""
        self._loaded = asyncio.Event()
        self._loaded.set()
        self.windows = 0
        """Windows that the page has asked to open, so far."""

    @property
    def loading(self) -> bool:
        """A navigation of the top document was asked for or is under way."""
        return not self._loaded.is_set()

    async def loaded(self) -> None:
        """Returns when no navigation is under way."""
        await self._loaded.wait()

    async def call(self, function: str, *args: object) -> Any:
        """The JSON value (awaited) of `function(...args)`. Raises PlaywrightError if the document goes away."""
        expression = f"({function})({', '.join(json.dumps(a) for a in args)})"
        try:
            return await self._evaluate(expression)
        except PlaywrightError as error:
            if NO_CONTEXT not in str(error):
                raise
            self._context = None
            return await self._evaluate(expression)

    async def shown(self) -> tuple[str, str]:
        """(title, address) as the browser would show them: answered even when the page itself hangs.

        Of a new window that is still loading, the address is the one it goes to.
        """
        info = (await (await self._session()).send("Target.getTargetInfo"))["targetInfo"]
        return str(info["title"]), str(info["url"])

    async def _evaluate(self, expression: str) -> Any:
        cdp = await self._session()
        if self._context is None:
            made = await cdp.send("Page.createIsolatedWorld", {"frameId": self._frame, "worldName": WORLD})
            self._context = int(made["executionContextId"])
            self._holds_program = False  # ids of contexts come again in other processes
        context = self._context
        if not self._holds_program:  # in the same message: a document may live for one call only
            expression = f"{_PROGRAM};\n{expression}"
        answer = await cdp.send(
            "Runtime.evaluate",
            {"expression": expression, "contextId": context, "awaitPromise": True, "returnByValue": True},
        )
        self._holds_program = self._holds_program or context == self._context
        if "exceptionDetails" in answer:
            raise PlaywrightError(f"page script failed: {answer['exceptionDetails'].get('text', '')}")
        return answer["result"].get("value")

    async def _session(self) -> CDPSession:
        """This page's DevTools session: one for the life of the page."""
        async with self._opening:
            if self._cdp is None:
                cdp = await self._page.context.new_cdp_session(self._page)
                tree = await cdp.send("Page.getFrameTree")
                self._frame = tree["frameTree"]["frame"]["id"]
                cdp.on("Page.frameRequestedNavigation", self._begins)
                cdp.on("Page.frameStartedLoading", self._begins)
                cdp.on("Page.frameNavigated", self._navigated)
                cdp.on("Page.frameStoppedLoading", self._ends)
                cdp.on("Page.windowOpen", self._window)
                await cdp.send("Page.enable")
                self._cdp = cdp
            return self._cdp

    def _begins(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self._frame:
            self._loaded.clear()

    def _ends(self, event: dict[str, Any]) -> None:
        if event["frameId"] == self._frame:
            self._loaded.set()

    def _window(self, _: dict[str, Any]) -> None:
        self.windows += 1

    def _navigated(self, event: dict[str, Any]) -> None:
        if event["frame"]["id"] == self._frame:
            self._context = None  # the old document's world: its id would only cost a failed call
