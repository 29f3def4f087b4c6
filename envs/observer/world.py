"""An isolated JavaScript world in one renderer process of a tab, with every call bounded in time.

The page's own scripts can neither see this world nor change its built-ins. It has access to all frames of its
process that its document's origin may look into (`grantUniveralAccess` is not enough to look into the others), so one
call covers a document and its iframes of the same origin; iframes of other origins get a world each, be it in another
process or in this one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from envs.core.errors import EnvError, PageCrashed, PageHung
from envs.core.record import storable
from envs.observer.program import program

T = TypeVar("T")

_PARTS = (
    *("dom.js", "names.js", "walk.js", "controls.js", "layout.js", "effects.js", "api.js", "target.js"),
    *("entering.js", "scrolling.js"),
)
_CALLS = (
    "observe, relayOut, find, lines, tellLines, expand, hosts, frameHolder, frameOrigin, adoptRoots, adoptListeners, "
    "adoptHearing, resolve, facts, pointOf, showHolder, throughHolder, prepare, selectAll, caretToEnd, fillValue, "
    "insert, chooseOption, pageAddress, isFileInput, scrollAround"
)
_WORLD = "mira"
_OBJECTS = "mira-objects"
_GONE = ("Cannot find context", "context was destroyed", "uniqueContextId not found", "Cannot find object")
_CRASH = ("crashed", "Target crashed")


MAX_ERROR = 500
"""Characters of a failure of the page program that are reported."""
_WINDOW = "function () { try { return [window, window.navigation]; } catch { return [window]; } }"
"""A window and what hears of its navigations. Runs in the page's own world, where listeners of a window are known: the
page may have put something else in the place of the latter."""


class WorldGone(EnvError):
    """The document of this world was replaced by another: look again."""


class World:
    """The world of one document tree; made anew after every navigation of it."""

    def __init__(self, session: CDPSession, frame_id: str, *, shares_process: bool = False) -> None:
        self.session = session
        self.frame_id = frame_id
        """The browser's id of the top frame of this document tree."""
        self.shares_process = shares_process
        """The session is that of an outer document: its own document is not this one."""
        self._context: int | None = None
        self._document = ""
        self._window: list[str] = []
        self.is_large = False
        """The last look met more nodes than the listener scan is worth."""
        self.listeners: set[int] = set()
        """Backend ids of the nodes that are known to listen."""
        self.unexamined: list[int] = []
        """Those of them that the page program has not been told of."""
        self.hearing: dict[int, int] = {}
        """What the page program was told of who listens: groups by backend id, see :mod:`envs.observer.listening`."""
        self.window_hears = 0
        """The same of the windows."""
        self.window_groups = 0
        """What the windows listen to now, told or not."""
        self.unheard: dict[int, int] = {}
        """What it has not been told yet."""
        self._holds_objects = False

    @property
    def is_fresh(self) -> bool:
        """No document has been entered yet."""
        return self._context is None

    @property
    def knows_hearing(self) -> bool:
        """Whether the page program knows of all listeners that the last look met."""
        return not (self.is_large or self.unheard)

    async def enter(self, timeout_s: float) -> None:
        """Makes the world in the frame's present document."""
        made = await self.send(
            "Page.createIsolatedWorld",
            {"frameId": self.frame_id, "worldName": _WORLD, "grantUniveralAccess": True},
            timeout_s,
        )
        self._context = made["executionContextId"]
        self.listeners.clear()
        self.unexamined.clear()
        self.hearing.clear()
        self.unheard.clear()
        self.window_hears = 0
        self.window_groups = 0
        self._window = []
        self.is_large = False
        _result(
            await self.send(
                "Runtime.evaluate", {"expression": program(_PARTS, _CALLS), "contextId": self._context}, timeout_s
            )
        )
        # Listeners are asked of the document as the page's own world knows it: Chromium 156 hands out broken nodes,
        # and may crash, after they were asked of an isolated world's document. `document` cannot be overridden.
        self._document = await self._page_document(timeout_s)

    async def _page_document(self, timeout_s: float) -> str:
        """The remote object of the document in the page's own world."""
        if not self.shares_process:
            answer = await self.send("Runtime.evaluate", {"expression": "document"}, timeout_s)
            return str(_result(answer)["objectId"])
        answer = await self.send("Runtime.evaluate", {"expression": "document", "contextId": self._context}, timeout_s)
        described = await self.send("DOM.describeNode", {"objectId": _result(answer)["objectId"]}, timeout_s)
        same = {"backendNodeId": described["node"]["backendNodeId"]}  # in no context named: in the page's own
        return str((await self.send("DOM.resolveNode", same, timeout_s))["object"]["objectId"])

    def leave(self) -> None:
        """Forgets the document: the next call enters the then present one."""
        self._context = None

    async def send(self, method: str, params: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """One DevTools command. Raises PageHung, PageCrashed or WorldGone."""
        try:
            return await bounded(self.session.send(method, params), timeout_s, method)
        except PlaywrightError as error:
            raise _typed(error) from error

    async def call(self, name: str, *args: Any, timeout_s: float) -> Any:
        """Calls one of the program's functions with JSON values and returns its (parsed) answer."""
        answer = await self._call(
            f"(...a) => mira.{name}(...a)", [{"value": a} for a in args], timeout_s, by_value=True
        )
        value = answer.get("value")
        return json.loads(value) if isinstance(value, str) and value[:1] in "{[" else value

    async def call_for_object(self, name: str, *args: Any, timeout_s: float) -> dict[str, Any]:
        """Calls a function and returns the DevTools remote object, for answers that are elements."""
        return await self._call(f"(...a) => mira.{name}(...a)", [{"value": a} for a in args], timeout_s, by_value=False)

    async def call_with_objects(
        self, name: str, objects: Sequence[str | None], timeout_s: float, values: Sequence[Any] = ()
    ) -> Any:
        """Calls a function with JSON *values* and then remote objects as arguments; None becomes null."""
        given = [{"value": one} for one in values]
        arguments = [*given, *({"value": None} if one is None else {"objectId": one} for one in objects)]
        return (await self._call(f"(...a) => mira.{name}(...a)", arguments, timeout_s, by_value=True)).get("value")

    async def _call(
        self, function: str, arguments: list[dict[str, Any]], timeout_s: float, *, by_value: bool
    ) -> dict[str, Any]:
        if self._context is None:
            await self.enter(timeout_s)
        params = {
            "functionDeclaration": function,
            "arguments": arguments,
            "executionContextId": self._context,
            "returnByValue": by_value,
            "objectGroup": _OBJECTS,
        }
        self._holds_objects = self._holds_objects or not by_value
        return _result(await self.send("Runtime.callFunctionOn", params, timeout_s))

    async def adopt_node(self, backend_id: int, timeout_s: float) -> str | None:
        """The remote object of a node in this world, None where it is gone."""
        try:
            params = {"backendNodeId": backend_id, "executionContextId": self._context, "objectGroup": _OBJECTS}
            self._holds_objects = True
            found = await self.send("DOM.resolveNode", params, timeout_s)
        except WorldGone:
            return None
        return found["object"].get("objectId")

    async def release(self, timeout_s: float) -> None:
        """Lets go of the elements held for earlier looks and actions, so that the page can free them."""
        if self._holds_objects:
            self._holds_objects = False
            await self.send("Runtime.releaseObjectGroup", {"objectGroup": _OBJECTS}, timeout_s)

    async def all_listeners(self, timeout_s: float) -> list[dict[str, Any]]:
        """Every listener of a node in this document tree, shadow roots and frames of the same origin included."""
        params = {"objectId": self._document, "depth": -1, "pierce": True}
        return (await self.send("DOMDebugger.getEventListeners", params, timeout_s))["listeners"]

    async def window_listeners(self, timeout_s: float) -> list[dict[str, Any]]:
        """The listeners of its window and of what the window navigates by."""
        if not self._window:
            self._window = await self._window_of(self._document, timeout_s)
        return await self._listeners_at(self._window, timeout_s)

    async def frame_listeners(self, frame: str, timeout_s: float) -> list[dict[str, Any]]:
        """The same of an iframe in it, given as a remote object; none where its document has just gone."""
        document = await self._document_in(frame, timeout_s)
        if document is None:
            return []
        return await self._listeners_at(await self._window_of(document, timeout_s, _OBJECTS), timeout_s)

    async def _window_of(self, document: str, timeout_s: float, group: str = "") -> list[str]:
        """Remote objects of a document's window and its `navigation`, as the page's own world knows them."""
        params = {"functionDeclaration": _WINDOW, "objectId": document, "objectGroup": group}
        self._holds_objects = self._holds_objects or bool(group)
        pair = _result(await self.send("Runtime.callFunctionOn", params, timeout_s))
        listed = await self.send(
            "Runtime.getProperties", {"objectId": pair["objectId"], "ownProperties": True}, timeout_s
        )
        window, *others = [one.get("value", {}) for one in listed["result"] if one["name"].isdigit()]
        return [
            str(one["objectId"]) for one in (window, *others) if one is window or one.get("className") == "Navigation"
        ]

    async def _listeners_at(self, window: Sequence[str], timeout_s: float) -> list[dict[str, Any]]:
        """The listeners of what `_window_of` gave; a page that hides its `navigation` counts as listening there."""
        asked = (self.send("DOMDebugger.getEventListeners", {"objectId": one}, timeout_s) for one in window)
        found = [listener for one in await asyncio.gather(*asked) for listener in one["listeners"]]
        return found if len(window) > 1 else [*found, {"type": "navigate"}]

    async def _document_in(self, frame: str, timeout_s: float) -> str | None:
        """The remote object of an iframe's document in the page's own world."""
        try:
            described = await self.send("DOM.describeNode", {"objectId": frame, "depth": 1, "pierce": True}, timeout_s)
            inner = described["node"].get("contentDocument")
            if inner is None:
                return None
            params = {"backendNodeId": inner["backendNodeId"], "objectGroup": _OBJECTS}
            found = await self.send("DOM.resolveNode", params, timeout_s)
        except WorldGone:
            return None
        return found["object"].get("objectId")


async def bounded(awaitable: Awaitable[T], timeout_s: float, what: str) -> T:
    """The answer, or PageHung after *timeout_s* seconds."""
    try:
        return await asyncio.wait_for(awaitable, max(timeout_s, 0.001))
    except TimeoutError:
        raise PageHung(f"the page did not answer {what} within {timeout_s:.1f} s") from None


def _typed(error: PlaywrightError) -> EnvError:
    message = error.message.splitlines()[0] if error.message else "no message"
    if any(part in message for part in _CRASH):
        return PageCrashed(f"the renderer died: {message}")
    return WorldGone(message)


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    """The remote object of an answer; an exception in the page program is a defect of ours and raises EnvError."""
    if "exceptionDetails" in answer:
        details = answer["exceptionDetails"]
        text = details.get("exception", {}).get("description") or details.get("text", "")
        raise EnvError(f"the observer's page program failed: {storable(text)[:MAX_ERROR]}")
    return answer["result"]
