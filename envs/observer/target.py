"""A live element, and the point at which to click it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from envs.core.actions import ActionResult, Reason, Status
from envs.core.errors import EnvError
from envs.core.observation import ElementKey
from envs.core.record import storable
from envs.observer.world import World

Move = Callable[[float, float], Awaitable[object]]
"""Moves the pointer to a point in CSS pixels of the top viewport."""
HOVERS = 3
"""Number of moves to the row: what the pointer leaves may collapse, so that the row moves away from the pointer."""
SHOWN_MS = 400
"""Maximum time in milliseconds for an element to show after the pointer came over its row."""


class Point(NamedTuple):
    """A point in CSS pixels of the top viewport."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Holder:
    """The iframe element in an outer process that contains the target's frame."""

    world: World
    object_id: str


@dataclass(frozen=True, slots=True)
class Target:
    """A live element in its frame's isolated world. Valid for one action only, because the page may change."""

    key: ElementKey
    tag: str
    type: str
    """The `type` of an input; empty for other elements."""
    states: tuple[str, ...]
    world: World
    object_id: str
    holders: tuple[Holder, ...]
    """The iframes around it that belong to other worlds, innermost first."""
    timeout_s: float

    @property
    def role(self) -> str:
        return self.key.role

    async def point(self, move: Move | None = None, *, presses: bool = False) -> Point | ActionResult:
        """Scrolls the element into view and returns a point of it that is not covered.

        If the element shows only while the pointer is over its row, *move* moves the pointer there first. If there is
        no point, returns a result with COVERED, DISABLED, NOT_ACTIONABLE (no visible box) or STALE. With *presses* the
        page program notes that the element is pressed there, so that a change of its appearance is reported.
        """
        await self._show_holders()
        answer = await self._point_in_frame(presses)
        hovers = HOVERS
        while "hover" in answer and move is not None and hovers > 0:
            hovers -= 1
            spot = await self._through_holders(Point(float(answer["hover"]["x"]), float(answer["hover"]["y"])))
            if isinstance(spot, ActionResult):
                return spot
            await move(*spot)
            await self.call(_UNTIL_SHOWN, SHOWN_MS)
            answer = await self._point_in_frame(presses)
        if "status" in answer:
            status, message = Status(answer["status"]), f"{_label(self.key)}: {answer['message']}"
            return ActionResult(status=status, reason=_REASONS[status], message=message)
        return await self._through_holders(Point(float(answer["x"]), float(answer["y"])))

    async def point_now(self) -> Point | None:
        """Returns a point of the element that is not covered; None if there is none without scrolling."""
        answer = json.loads(str(await self.call(_POINT_NOW)))
        if answer is None:
            return None
        point = await self._through_holders(Point(float(answer["x"]), float(answer["y"])))
        return None if isinstance(point, ActionResult) else point

    async def _point_in_frame(self, presses: bool) -> dict[str, Any]:
        return json.loads(str(await self.call(_POINT, presses)))

    async def _show_holders(self) -> None:
        """Scrolls the iframes of other processes around the element into view."""
        for holder in reversed(self.holders):
            await self._call_on(holder.world, holder.object_id, _SCROLL, ())
            # Chromium routes input to another process by the last drawn position, so the scroll must be drawn first.
            await self._call_on(holder.world, holder.object_id, _DRAWN, ())
        if self.holders:
            await self.call(_DRAWN)

    async def _through_holders(self, point: Point) -> Point | ActionResult:
        """Converts a point of the element's document to the top viewport; COVERED if an iframe is covered there."""
        x, y = point
        for holder in self.holders:
            outer = json.loads(str(await self._call_on(holder.world, holder.object_id, _THROUGH, (x, y))))
            if outer is None:
                message = f"{_label(self.key)}: its frame is covered there"
                return ActionResult(status=Status.COVERED, reason=Reason.COVERED, message=message)
            x, y = outer
        return Point(x, y)

    async def call(self, function: str, *args: object, timeout_s: float | None = None) -> Any:
        """Runs a JavaScript function in the isolated world with `this` bound to the element; JSON in and out."""
        return await self._call_on(self.world, self.object_id, function, args, timeout_s)

    async def set_files(self, paths: Sequence[Path]) -> None:
        """Sets the files of a file input without opening a chooser."""
        params = {"files": [str(path.resolve()) for path in paths], "objectId": self.object_id}
        await self.world.send("DOM.setFileInputFiles", params, self.timeout_s)

    async def _call_on(
        self, world: World, object_id: str, function: str, args: Sequence[object], timeout_s: float | None = None
    ) -> Any:
        params: dict[str, Any] = {
            "functionDeclaration": function,
            "objectId": object_id,
            "arguments": [{"value": arg} for arg in args],
            "returnByValue": True,
            "awaitPromise": True,
        }
        answer = await world.send("Runtime.callFunctionOn", params, self.timeout_s if timeout_s is None else timeout_s)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            reason = details.get("exception", {}).get("description") or details.get("text", "")
            raise EnvError(f"a script on {_label(self.key)} failed: {storable(str(reason))}")
        return answer["result"].get("value")


_REASONS = {
    Status.STALE: Reason.STALE_ELEMENT,
    Status.DISABLED: Reason.DISABLED,
    Status.NOT_ACTIONABLE: Reason.NO_VISIBLE_BOX,
    Status.COVERED: Reason.COVERED,
}
"""Reasons of the statuses that `pointOf` in `in_page/target.js` returns."""
_POINT = "function (presses) { return mira.pointOf.call(this, presses); }"
_POINT_NOW = "function () { return mira.pointNow.call(this); }"
_SCROLL = "function () { mira.showHolder(this); }"
_DRAWN = (
    "function () { return new Promise(done => { setTimeout(done, 200, false); "
    "requestAnimationFrame(() => requestAnimationFrame(() => done(true))); }); }"
)
"""Waits for two animation frames, at most 200 ms."""
_UNTIL_SHOWN = "function (most) { return mira.untilShown.call(this, most); }"
_THROUGH = "function (x, y) { return mira.throughHolder(this, x, y); }"


def _label(key: ElementKey) -> str:
    return f"{key.role} {key.name!r}"
