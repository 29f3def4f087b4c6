"""The worlds of a tab: one for its main frame, one for every iframe whose document its holder may not look into.

Such an iframe is of another origin. Where it is of another site too, another process draws it and it has a DevTools
session of its own. An iframe of the same site (`pay.shop.example` in `www.shop.example`, another port of one host)
lives in its holder's process: its world is made through the holder's session.
"""

from __future__ import annotations

import asyncio
from typing import Any

from playwright.async_api import CDPSession, Frame, Page
from playwright.async_api import Error as PlaywrightError

from envs.core.errors import PageHung
from envs.observer.world import World, WorldGone, bounded


class FrameWorlds:
    """Finds and keeps the worlds of one tab."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._main: World | None = None
        self._sessions: dict[Frame, tuple[CDPSession, str]] = {}
        self._worlds: dict[str, World] = {}

    async def main(self, timeout_s: float) -> World:
        """The world of the tab's main frame."""
        if self._main is None:
            session = await self._open(self._page, timeout_s)
            self._main = World(session, await _root_frame(session, timeout_s))
        return self._main

    async def sessions(self, timeout_s: float) -> list[CDPSession]:
        """One for each process that draws a part of the tab."""
        main = await self.main(timeout_s)
        await self._match_frames(timeout_s)
        present = self._page.frames
        return [main.session, *(session for frame, (session, _) in self._sessions.items() if frame in present)]

    async def remote(self, holder: World, index: int, timeout_s: float) -> World | None:
        """The world of iframe *index* of the holder's last look, None where it is just coming or going."""
        element = await holder.call_for_object("frameHolder", index, timeout_s=timeout_s)
        described = await holder.send("DOM.describeNode", {"objectId": element["objectId"]}, timeout_s)
        frame_id = described["node"].get("frameId")
        if frame_id is None:
            return None
        known = self._worlds.get(frame_id)
        shared = frame_id in await _frames_of_process(holder, timeout_s)
        if known is not None and (known.session is holder.session) != shared:  # it moved to or from another process
            self.forget(known)
            known = None
        if known is None and shared:
            self._worlds[frame_id] = World(holder.session, frame_id, shares_process=True)
        elif known is None:
            await self._match_frames(timeout_s)
        return self._worlds.get(frame_id)

    async def address(self, world: World, timeout_s: float) -> str:
        """Where the world's document came from; of an error page, what could not be loaded."""
        frame = (await _frames_of_process(world, timeout_s)).get(world.frame_id, {})
        return str(frame.get("unreachableUrl") or frame.get("url", ""))

    def forget(self, world: World) -> None:
        """Drops a world whose document or process is gone."""
        self._worlds.pop(world.frame_id, None)
        for frame, (_, frame_id) in list(self._sessions.items()):
            if frame_id == world.frame_id:
                del self._sessions[frame]

    async def _match_frames(self, timeout_s: float) -> None:
        """Opens a session to every frame that has a process of its own."""
        frames = [frame for frame in self._page.frames[1:] if frame not in self._sessions]
        await asyncio.gather(*(self._match(frame, timeout_s) for frame in frames))

    async def _match(self, frame: Frame, timeout_s: float) -> None:
        try:
            session = await self._open(frame, timeout_s)
            frame_id = await _root_frame(session, timeout_s)
        except (PlaywrightError, WorldGone, PageHung):
            return  # a frame of its parent's process, or one that is just going
        self._sessions[frame] = (session, frame_id)
        self._worlds[frame_id] = World(session, frame_id)

    async def _open(self, of: Page | Frame, timeout_s: float) -> CDPSession:
        return await bounded(self._page.context.new_cdp_session(of), timeout_s, "a DevTools session")

    async def aclose(self) -> None:
        """Ends the sessions; the page stays as it is."""
        sessions = [session for session, _ in self._sessions.values()]
        if self._main is not None:
            sessions.append(self._main.session)
        self._main = None
        self._sessions.clear()
        self._worlds.clear()
        for session in sessions:
            try:
                await bounded(session.detach(), 1.0, "detach")
            except (PlaywrightError, PageHung):
                continue  # the page or its frame is gone, and the session with it


async def _frames_of_process(world: World, timeout_s: float) -> dict[str, dict[str, Any]]:
    """The frames that the world's session reaches, by id; those that other processes draw are not among them."""
    left = [(await world.send("Page.getFrameTree", {}, timeout_s))["frameTree"]]
    found: dict[str, dict[str, Any]] = {}
    while left:
        tree = left.pop()
        found[str(tree["frame"]["id"])] = tree["frame"]
        left += tree.get("childFrames", ())
    return found


async def _root_frame(session: CDPSession, timeout_s: float) -> str:
    tree = await bounded(session.send("Page.getFrameTree"), timeout_s, "Page.getFrameTree")
    return str(tree["frameTree"]["frame"]["id"])
