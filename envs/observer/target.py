"""A live element, and the point at which a click reaches it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from envs.core.actions import ActionResult, Reason, Status
from envs.core.errors import EnvError
from envs.core.observation import ElementKey
from envs.core.record import storable
from envs.observer.world import World


class Point(NamedTuple):
    """A point in CSS pixels of the top viewport."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Holder:
    """The iframe element, in an outer process, that shows the frame a target lives in."""

    world: World
    object_id: str


@dataclass(frozen=True, slots=True)
class Target:
    """A live element, held in its frame's isolated world. Good for one action: the page may change under it."""

    key: ElementKey
    tag: str
    type: str
    """The `type` of an input, else ''."""
    states: tuple[str, ...]
    world: World
    object_id: str
    holders: tuple[Holder, ...]
    """The cross-process iframes around it, innermost first."""
    timeout_s: float

    @property
    def role(self) -> str:
        return self.key.role

    async def point(self) -> Point | ActionResult:
        """Brings the element into view and returns a point of it that is on top of everything else.

        Otherwise says why not: COVERED (by what), DISABLED, NOT_ACTIONABLE (no visible box) or STALE.
        """
        for holder in reversed(self.holders):
            await self._call_on(holder.world, holder.object_id, _SCROLL, ())
            # Input goes to a frame of another process by where that frame was last drawn, so the scroll must be drawn.
            await self._call_on(holder.world, holder.object_id, _DRAWN, ())
        if self.holders:
            await self.call(_DRAWN)
        found = json.loads(str(await self.call("function () { return mira.pointOf.call(this); }")))
        if "status" in found:
            status, message = Status(found["status"]), f"{_label(self.key)}: {found['message']}"
            return ActionResult(status=status, reason=_REASONS[status], message=message)
        x, y = float(found["x"]), float(found["y"])
        for holder in self.holders:
            outer = json.loads(str(await self._call_on(holder.world, holder.object_id, _THROUGH, (x, y))))
            if outer is None:
                message = f"{_label(self.key)}: its frame is covered there"
                return ActionResult(status=Status.COVERED, reason=Reason.COVERED, message=message)
            x, y = outer
        return Point(x, y)

    async def call(self, function: str, *args: object, timeout_s: float | None = None) -> Any:
        """Runs a JavaScript function with `this` bound to the element, out of the page's sight; JSON in and out."""
        return await self._call_on(self.world, self.object_id, function, args, timeout_s)

    async def set_files(self, paths: Sequence[Path]) -> None:
        """Puts files into a file input, without opening a chooser."""
        params = {"files": [str(path.resolve()) for path in paths], "objectId": self.object_id}
        await self.world.send("DOM.setFileInputFiles", params, self.timeout_s)

    async def _call_on(
        self, world: World, object_id: str, function: str, args: Sequence[object], timeout_s: float | None = None
    ) -> Any:
        params: dict[str, Any] = {
            "functionDeclaration": function,
            "objectId": object_id,
            "arguments": [{"value": one} for one in args],
            "returnByValue": True,
            "awaitPromise": True,
        }
        answer = await world.send("Runtime.callFunctionOn", params, self.timeout_s if timeout_s is None else timeout_s)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            told = details.get("exception", {}).get("description") or details.get("text", "")
            raise EnvError(f"a script on {_label(self.key)} failed: {storable(str(told))}")
        return answer["result"].get("value")


_REASONS = {
    Status.STALE: Reason.STALE_ELEMENT,
    Status.DISABLED: Reason.DISABLED,
    Status.NOT_ACTIONABLE: Reason.NO_VISIBLE_BOX,
    Status.COVERED: Reason.COVERED,
}
"""Of the statuses of `pointOf` in `in_page/target.js`."""
_SCROLL = "function () { mira.showHolder(this); }"
_DRAWN = (
    "function () { return new Promise(done => { setTimeout(done, 200, false); "
    "requestAnimationFrame(() => requestAnimationFrame(() => done(true))); }); }"
)
"""Two frames later; a frame that is not drawn at all is not waited for."""
_THROUGH = "function (x, y) { return mira.throughHolder(this, x, y); }"


def _label(key: ElementKey) -> str:
    return f"{key.role} {key.name!r}"
