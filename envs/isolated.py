"""Calls into a page from a script world of our own, where the page cannot replace the built-ins.

Chromium gives such a world its own pristine `Object`, `Promise`, `setTimeout`, `MutationObserver`;
it shares only the DOM with the page. None of these calls is bounded by itself: callers bound them.
"""

from __future__ import annotations

import json
from typing import Any

from playwright.async_api import CDPSession, Page
from playwright.async_api import Error as PlaywrightError

WORLD = "mira"


class Isolated:
    """The isolated world of a page's top document; made anew after each navigation."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._cdp: CDPSession | None = None
        self._frame = ""
        self._context: int | None = None

    async def cdp(self) -> CDPSession:
        """This page's DevTools session (one for the life of the page)."""
        if self._cdp is None:
            self._cdp = await self._page.context.new_cdp_session(self._page)
        return self._cdp

    async def call(self, function: str, *args: object) -> Any:
        """The JSON value (awaited) of `function(...args)`. Raises PlaywrightError if the document goes away."""
        expression = f"({function})({', '.join(json.dumps(a) for a in args)})"
        try:
            return await self._evaluate(expression)
        except PlaywrightError as error:
            if "Cannot find context" not in str(error) and "uniqueContextId" not in str(error):
                raise
            self._context = None  # the document was replaced since the last call: nothing has run yet
            return await self._evaluate(expression)

    async def target(self) -> tuple[str, str]:
        """(title, url) as the browser knows them: answered even when the page itself hangs."""
        info = (await (await self.cdp()).send("Target.getTargetInfo"))["targetInfo"]
        return str(info["title"]), str(info["url"])

    async def _evaluate(self, expression: str) -> Any:
        cdp = await self.cdp()
        if self._context is None:
            self._context = await self._make_world(cdp)
        answer = await cdp.send(
            "Runtime.evaluate",
            {"expression": expression, "contextId": self._context, "awaitPromise": True, "returnByValue": True},
        )
        if "exceptionDetails" in answer:
            raise PlaywrightError(f"page script failed: {answer['exceptionDetails'].get('text', '')}")
        return answer["result"].get("value")

    async def _make_world(self, cdp: CDPSession) -> int:
        if not self._frame:
            tree = await cdp.send("Page.getFrameTree")
            self._frame = tree["frameTree"]["frame"]["id"]
        made = await cdp.send("Page.createIsolatedWorld", {"frameId": self._frame, "worldName": WORLD})
        return int(made["executionContextId"])
