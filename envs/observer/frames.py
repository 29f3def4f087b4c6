"""Manages the isolated worlds of a tab: one for the main frame, and one for each iframe of another origin.

The document around such an iframe cannot read it. An iframe of another site runs in another process and has its own
DevTools session. An iframe of the same site but another origin (`pay.shop.example` in `www.shop.example`, or another
port) runs in its parent's process: its world is created through the parent's session.
"""

from __future__ import annotations

import asyncio
from typing import Any

from playwright.async_api import CDPSession, Frame, Page
from playwright.async_api import Error as PlaywrightError

from envs.core.errors import PageHung
from envs.observer.world import World, bounded

DETACH_S = 1.0


class FrameWorlds:
    """Finds and caches the worlds of one tab."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._main: World | None = None
        self._sessions: dict[Frame, tuple[CDPSession, str]] = {}
        self._worlds: dict[str, World] = {}

    async def main(self, timeout_s: float) -> World:
        """Returns the world of the tab's main frame."""
        if self._main is None:
            session = await self._open(self._page, timeout_s)
            self._main = World(session, await _root_frame(session, timeout_s))
        return self._main

    async def sessions(self, timeout_s: float) -> list[CDPSession]:
        """Returns one session for each process of the tab."""
        main = await self.main(timeout_s)
        await self._match_frames(timeout_s)
        present = self._page.frames
        return [main.session, *(session for frame, (session, _) in self._sessions.items() if frame in present)]

    async def remote(self, holder: World, index: int, timeout_s: float) -> World | None:
        """Returns the world of iframe *index* of the holder's last observation; None while it is created or removed."""
        element = await holder.call_for_object("frameHolder", index, timeout_s=timeout_s)
        described = await holder.send("DOM.describeNode", {"objectId": element["objectId"]}, timeout_s)
        frame_id = described["node"].get("frameId")
        if frame_id is None:
            return None
        known = self._worlds.get(frame_id)
        shared = frame_id in await _frames_of_process(holder, timeout_s)
        if known is not None and (known.session is holder.session) != shared:  # it moved to or from another process
            await self.forget(known)
            known = None
        if known is None and shared:
            self._worlds[frame_id] = World(holder.session, frame_id, shares_process=True)
        elif known is None:
            await self._match_frames(timeout_s)
        return self._worlds.get(frame_id)

    async def address(self, world: World, timeout_s: float) -> str:
        """Returns the address of the world's document; for an error page, the address that failed to load."""
        frame = (await _frames_of_process(world, timeout_s)).get(world.frame_id, {})
        return str(frame.get("unreachableUrl") or frame.get("url", ""))

    async def forget(self, world: World) -> None:
        """Removes a world whose document or process is gone, or does not answer."""
        self._worlds.pop(world.frame_id, None)
        frames = [frame for frame, (_, frame_id) in self._sessions.items() if frame_id == world.frame_id]
        await asyncio.gather(*map(self._close, frames))

    async def _match_frames(self, timeout_s: float) -> None:
        """Opens a session to every frame that has its own process, and closes those of removed frames."""
        present = self._page.frames
        await asyncio.gather(*(self._close(frame) for frame in [*self._sessions] if frame not in present))
        frames = [frame for frame in present[1:] if frame not in self._sessions]
        await asyncio.gather(*(self._match(frame, timeout_s) for frame in frames))

    async def _close(self, frame: Frame) -> None:
        """Closes the session of a frame, without changing the page."""
        session, frame_id = self._sessions.pop(frame, (None, ""))
        if session is not None:
            self._worlds.pop(frame_id, None)
            await _detach(session)

    async def _match(self, frame: Frame, timeout_s: float) -> None:
        try:
            session = await self._open(frame, timeout_s)
        except (PlaywrightError, PageHung):
            return  # the frame is in its parent's process, or is being removed
        try:
            frame_id = await _root_frame(session, timeout_s)
        except (PlaywrightError, PageHung):
            frame_id = ""  # it does not answer, or is being removed
        if not frame_id or frame in self._sessions:  # a concurrent call was faster
            await _detach(session)
            return
        self._sessions[frame] = (session, frame_id)
        self._worlds[frame_id] = World(session, frame_id)

    async def _open(self, of: Page | Frame, timeout_s: float) -> CDPSession:
        return await bounded(self._page.context.new_cdp_session(of), timeout_s, "a DevTools session")


async def _frames_of_process(world: World, timeout_s: float) -> dict[str, dict[str, Any]]:
    """Returns the frames in the process of the world's session, by id."""
    left = [(await world.send("Page.getFrameTree", {}, timeout_s))["frameTree"]]
    frames: dict[str, dict[str, Any]] = {}
    while left:
        tree = left.pop()
        frames[str(tree["frame"]["id"])] = tree["frame"]
        left += tree.get("childFrames", ())
    return frames


async def _detach(session: CDPSession) -> None:
    try:
        await bounded(session.detach(), DETACH_S, "detach")
    except (PlaywrightError, PageHung):
        return  # it ended with the frame


async def _root_frame(session: CDPSession, timeout_s: float) -> str:
    tree = await bounded(session.send("Page.getFrameTree"), timeout_s, "Page.getFrameTree")
    return str(tree["frameTree"]["frame"]["id"])
