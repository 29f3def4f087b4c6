"""An isolated JavaScript world in one renderer process of a tab; every call has a timeout.

The page's scripts can neither see this world nor change its built-ins. The world can read all frames of its process
that its document's origin may read (`grantUniveralAccess` does not extend this). One call covers a document and its
iframes of the same origin; each iframe of another origin has its own world, in this process or another one.
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

PARTS = (
    *("dom.js", "names.js", "accname.js", "pseudo.js", "icons.js", "layers.js", "style_rules.js", "parts.js"),
    *(
        "walk.js",
        "controls.js",
        "state_words.js",
        "states.js",
        "surfaces.js",
        "layout.js",
        "effects.js",
        "api.js",
        "target.js",
        "pointing.js",
    ),
    *("entering.js", "read_back.js", "scrolling.js"),
)
_CALLS = (
    "observe, relayOut, forgetAppearances, find, lines, tellLines, expand, hosts, frameHolder, frameOrigin, "
    "adoptRoots, adoptListeners, adoptHovering, adoptListenerGroups, resolve, facts, pointOf, pointNow, untilShown, "
    "showHolder, throughHolder, prepare, selectAll, caretToEnd, fillValue, insert, chooseOption, pageAddress, "
    "isFileInput, scrollAround, scrollPage, controlAt, differs, listensToText, focusState, resumeEntry, "
    "readBack, enterAtOnce"
)
_WORLD = "mira"
_OBJECTS = "mira-objects"
_CRASH = ("crashed", "Target crashed")
"""Parts of Playwright's errors for a crashed renderer."""


MAX_ERROR = 500
"""Maximum length of a reported error of the page program."""
_WINDOW = "function () { try { return [window, window.navigation]; } catch { return [window]; } }"
"""Returns a window and its `navigation` object. Runs in the page's own world, where the window's listeners are known;
the page may have replaced `navigation`."""


class WorldGone(EnvError):
    """The document of this world was replaced; the page must be observed again."""


class World:
    """The world of one document tree; created again after each navigation."""

    def __init__(self, session: CDPSession, frame_id: str, *, shares_process: bool = False) -> None:
        self.session = session
        self.frame_id = frame_id
        """The browser's id of the top frame of this document tree."""
        self.shares_process = shares_process
        """The session belongs to an outer document."""
        self._context: int | None = None
        self._document = ""
        self._window: list[str] = []
        self.is_large = False
        """The page has too many nodes for the listener scan."""
        self.listeners: set[int] = set()
        """Backend ids of the known listening nodes."""
        self.unexamined: list[int] = []
        """Listening nodes that were not sent to the page program yet."""
        self.hovering: set[int] = set()
        """Backend ids of the known nodes that listen to the pointer coming over them."""
        self.unsent_hovering: list[int] = []
        """Those of them that were not sent to the page program yet."""
        self.text_listeners: dict[int, int] = {}
        """Groups of listeners for text by backend id, see :mod:`envs.observer.text_listeners`."""
        self.sent_groups: dict[int, int] = {}
        """Listener groups by backend id that the page program has, see :mod:`envs.observer.listening`."""
        self.sent_window_groups = 0
        """Listener groups of the windows that the page program has."""
        self.window_groups = 0
        """Current listener groups of the windows."""
        self.new_groups: dict[int, int] = {}
        """Listener groups by backend id that were not sent to the page program yet."""
        self._holds_objects = False

    @property
    def is_fresh(self) -> bool:
        """Whether no document was entered yet."""
        return self._context is None

    @property
    def document(self) -> str:
        """The browser's id of the document that was entered last; empty before."""
        return self._document

    @property
    def knows_all_listeners(self) -> bool:
        """Whether the page program has all listeners of the last observation."""
        return not (self.is_large or self.new_groups)

    async def enter(self, timeout_s: float) -> None:
        """Creates the world in the frame's current document."""
        world = await self.send(
            "Page.createIsolatedWorld",
            {"frameId": self.frame_id, "worldName": _WORLD, "grantUniveralAccess": True},
            timeout_s,
        )
        self._context = world["executionContextId"]
        self.listeners.clear()
        self.unexamined.clear()
        self.hovering.clear()
        self.unsent_hovering.clear()
        self.text_listeners = {}
        self.sent_groups.clear()
        self.new_groups.clear()
        self.sent_window_groups = 0
        self.window_groups = 0
        self._window = []
        self.is_large = False
        _result(
            await self.send(
                "Runtime.evaluate", {"expression": program(PARTS, _CALLS), "contextId": self._context}, timeout_s
            )
        )
        # Listeners are read from the document object of the page's own world: with that of an isolated world,
        # Chromium 156 returns broken nodes and may crash. Pages cannot override `document`.
        self._document = await self._page_document(timeout_s)

    async def _page_document(self, timeout_s: float) -> str:
        """Returns the remote object of the document in the page's own world."""
        if not self.shares_process:
            answer = await self.send("Runtime.evaluate", {"expression": "document"}, timeout_s)
            return str(_result(answer)["objectId"])
        answer = await self.send("Runtime.evaluate", {"expression": "document", "contextId": self._context}, timeout_s)
        described = await self.send("DOM.describeNode", {"objectId": _result(answer)["objectId"]}, timeout_s)
        same = {"backendNodeId": described["node"]["backendNodeId"]}  # without a context: in the page's own world
        return str((await self.send("DOM.resolveNode", same, timeout_s))["object"]["objectId"])

    def leave(self) -> None:
        """Forgets the document; the next call enters the current one."""
        self._context = None

    async def send(self, method: str, params: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Sends one DevTools command. Raises PageHung, PageCrashed or WorldGone."""
        try:
            return await bounded(self.session.send(method, params), timeout_s, method)
        except PlaywrightError as error:
            raise _typed(error) from error

    async def call(self, name: str, *args: Any, timeout_s: float) -> Any:
        """Calls a function of the program with JSON values and returns its parsed answer."""
        answer = await self._call(
            f"(...a) => mira.{name}(...a)", [{"value": a} for a in args], timeout_s, by_value=True
        )
        value = answer.get("value")
        return json.loads(value) if isinstance(value, str) and value[:1] in "{[" else value

    async def call_for_object(self, name: str, *args: Any, timeout_s: float) -> dict[str, Any]:
        """Calls a function that returns an element, and returns its DevTools remote object."""
        return await self._call(f"(...a) => mira.{name}(...a)", [{"value": a} for a in args], timeout_s, by_value=False)

    async def call_with_objects(
        self, name: str, objects: Sequence[str | None], timeout_s: float, values: Sequence[Any] = ()
    ) -> Any:
        """Calls a function with JSON *values*, followed by remote objects; None becomes null."""
        objects_given = ({"value": None} if object_id is None else {"objectId": object_id} for object_id in objects)
        arguments = [*({"value": value} for value in values), *objects_given]
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
        """Returns the remote object of a node in this world; None if the node is gone."""
        try:
            params = {"backendNodeId": backend_id, "executionContextId": self._context, "objectGroup": _OBJECTS}
            self._holds_objects = True
            answer = await self.send("DOM.resolveNode", params, timeout_s)
        except WorldGone:
            return None
        return answer["object"].get("objectId")

    async def release(self, timeout_s: float) -> None:
        """Releases the elements of earlier observations and actions, so that the page can free them."""
        if self._holds_objects:
            self._holds_objects = False
            await self.send("Runtime.releaseObjectGroup", {"objectGroup": _OBJECTS}, timeout_s)

    async def all_listeners(self, timeout_s: float) -> list[dict[str, Any]]:
        """Returns all node listeners in this document tree, including shadow roots and same-origin frames."""
        params = {"objectId": self._document, "depth": -1, "pierce": True}
        return (await self.send("DOMDebugger.getEventListeners", params, timeout_s))["listeners"]

    async def window_listeners(self, timeout_s: float) -> list[dict[str, Any]]:
        """Returns the listeners of the window and of its `navigation` object."""
        if not self._window:
            self._window = await self._window_of(self._document, timeout_s)
        return await self._listeners_at(self._window, timeout_s)

    async def frame_listeners(self, frame: str, timeout_s: float) -> list[dict[str, Any]]:
        """Returns the window listeners of an iframe, given as a remote object; none if its document is gone."""
        document = await self._document_in(frame, timeout_s)
        if document is None:
            return []
        return await self._listeners_at(await self._window_of(document, timeout_s, _OBJECTS), timeout_s)

    async def _window_of(self, document: str, timeout_s: float, group: str = "") -> list[str]:
        """Returns remote objects of a document's window and its `navigation` in the page's own world."""
        params = {"functionDeclaration": _WINDOW, "objectId": document, "objectGroup": group}
        self._holds_objects = self._holds_objects or bool(group)
        pair = _result(await self.send("Runtime.callFunctionOn", params, timeout_s))
        listed = await self.send(
            "Runtime.getProperties", {"objectId": pair["objectId"], "ownProperties": True}, timeout_s
        )
        window, *others = [item.get("value", {}) for item in listed["result"] if item["name"].isdigit()]
        return [
            str(item["objectId"])
            for item in (window, *others)
            if item is window or item.get("className") == "Navigation"
        ]

    async def _listeners_at(self, window: Sequence[str], timeout_s: float) -> list[dict[str, Any]]:
        """Returns the listeners of the objects of `_window_of`; a hidden `navigation` counts as listened to."""
        calls = (self.send("DOMDebugger.getEventListeners", {"objectId": object_id}, timeout_s) for object_id in window)
        listeners = [listener for answer in await asyncio.gather(*calls) for listener in answer["listeners"]]
        return listeners if len(window) > 1 else [*listeners, {"type": "navigate"}]

    async def _document_in(self, frame: str, timeout_s: float) -> str | None:
        """Returns the remote object of an iframe's document in the page's own world; None if it is gone."""
        try:
            described = await self.send("DOM.describeNode", {"objectId": frame, "depth": 1, "pierce": True}, timeout_s)
            inner = described["node"].get("contentDocument")
            if inner is None:
                return None
            params = {"backendNodeId": inner["backendNodeId"], "objectGroup": _OBJECTS}
            answer = await self.send("DOM.resolveNode", params, timeout_s)
        except WorldGone:
            return None
        return answer["object"].get("objectId")


async def bounded(awaitable: Awaitable[T], timeout_s: float, request: str) -> T:
    """Returns the awaited answer. Raises PageHung after *timeout_s* seconds."""
    try:
        return await asyncio.wait_for(awaitable, max(timeout_s, 0.001))
    except TimeoutError:
        raise PageHung(f"the page did not answer {request} within {timeout_s:.1f} s") from None


def _typed(error: PlaywrightError) -> EnvError:
    message = error.message.splitlines()[0] if error.message else "no message"
    if any(part in message for part in _CRASH):
        return PageCrashed(f"the renderer died: {message}")
    return WorldGone(message)


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    """Returns the remote object of an answer. Raises EnvError for an exception in the page program, which is a bug."""
    if "exceptionDetails" in answer:
        details = answer["exceptionDetails"]
        text = details.get("exception", {}).get("description") or details.get("text", "")
        raise EnvError(f"the observer's page program failed: {storable(text)[:MAX_ERROR]}")
    return answer["result"]
