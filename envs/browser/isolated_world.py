"""Calls into a page from an isolated script world, in which the page cannot replace built-ins.

Chromium gives such a world its own unmodified `Object`, `Promise`, `setTimeout` and `MutationObserver`; only the DOM is
shared with the page. The functions of `mira.` (`envs/observer/in_page/*.js`) read the DOM such that elements named
after DOM properties do not shadow them. These calls have no timeout of their own: callers set one.
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
    ("watching.js", "settling.js", "reading.js"),
    "markPage, unmarkPage, changeSinceMark, untilQuiet, firstChange, offersSuggestions, wholePage, pageSource",
)
NO_CONTEXT = "Cannot find context"
"""Part of Chromium's error for a world that was destroyed with its document; the call was not executed."""


class Isolated:
    """The isolated world of a page's top document, created again after each navigation."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._cdp: CDPSession | None = None
        self._opening = asyncio.Lock()
        self._frame = ""
        self._context: int | None = None
        self._holds_program = False
        """Whether the context has the functions of `mira.`."""
        self._loaded = asyncio.Event()
        self._loaded.set()
        self.windows = 0
        """Number of windows that the page has requested so far."""

    @property
    def loading(self) -> bool:
        """Whether a navigation of the top document was requested or is in progress."""
        return not self._loaded.is_set()

    async def loaded(self) -> None:
        """Waits until no navigation is in progress."""
        await self._loaded.wait()

    async def call(self, function: str, *args: object) -> Any:
        """Returns the awaited JSON value of `function(...args)`. Raises PlaywrightError if the document is replaced."""
        expression = f"({function})({', '.join(json.dumps(a) for a in args)})"
        try:
            return await self._evaluate(expression)
        except PlaywrightError as error:
            if NO_CONTEXT not in str(error):
                raise
            self._context = None
            return await self._evaluate(expression)

    async def shown(self) -> tuple[str, str]:
        """Returns title and address from the browser, which answers even if the page hangs.

        For a new window that is still loading, it is the address being loaded.
        """
        info = (await (await self._session()).send("Target.getTargetInfo"))["targetInfo"]
        return str(info["title"]), str(info["url"])

    async def failed_address(self) -> str:
        """Returns the address that failed to load, if the page is the browser's error page; else an empty text."""
        tree = await (await self._session()).send("Page.getFrameTree")
        return str(tree["frameTree"]["frame"].get("unreachableUrl", ""))

    async def _evaluate(self, expression: str) -> Any:
        cdp = await self._session()
        if self._context is None:
            world = await cdp.send("Page.createIsolatedWorld", {"frameId": self._frame, "worldName": WORLD})
            self._context = int(world["executionContextId"])
            self._holds_program = False  # other processes use the same context ids
        context = self._context
        if not self._holds_program:  # in the same message, because the document may be replaced after one call
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
        """Returns this page's DevTools session; there is one per page."""
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
            self._context = None  # the world of the old document is gone
