"""Observes one tab: reads its text and controls, and resolves a ref or key to the live element.

All renderer processes are observed concurrently. The text is built in the page, so only shown text is transferred. The
observer does not modify the page, but scrolls it: it runs in isolated worlds, which page scripts cannot see.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from envs.core.actions import ActionResult, Reason, Status
from envs.core.errors import EnvError, PageCrashed, PageHung
from envs.core.observation import Element, ElementKey, Observation, Tab
from envs.core.record import storable
from envs.core.settings import ObserveSettings
from envs.observer.drawn import Drawn, drawn
from envs.observer.frames import FrameWorlds
from envs.observer.merge import Numbering, Part, Place, add_elements, joined, merged_text, surfaces_of
from envs.observer.nearest_controls import NO_SUCH_NUMBER
from envs.observer.page_state import steady_text
from envs.observer.process_observation import observe_process
from envs.observer.target import Holder, Target
from envs.observer.text_listeners import listens_to_text
from envs.observer.world import World, WorldGone, bounded
from envs.security.allowlist import origin_of
from envs.security.secrets import NO_SECRETS, SecretVault

FIND_CHARS = 4_000
"""Maximum length of the answer to `find` and `expand`, in characters."""
LISTED = 500
"""Number of controls that an observation lists although its text does not show them; `find` returns the others."""

MOVED = 2.0
"""CSS pixels by which a control may differ from its observed box and still count as the one of the screenshot."""
WALK_SHARE = 0.4
"""Share of the timeout after which the walk of a huge page stops and only counts the rest."""


def _anything(_url: str) -> bool:
    return True


class PageMoved(EnvError):
    """The layout is not that of the last observation, so a point of its screenshot is another one now."""


class Observer:
    """Observes one tab. There is one observer per tab; calls must not overlap."""

    def __init__(self, page: Page, settings: ObserveSettings, allowed: Callable[[str], bool] = _anything) -> None:
        """*allowed*: whether an iframe at this http or https address may be read. Other documents of iframes (srcdoc,
        data, blob) are always read, because the page itself created them."""
        self._page = page
        self._settings = settings
        self._allowed = allowed
        self._frames = FrameWorlds(page)
        self._numbering = Numbering()
        self._holders: dict[World, tuple[World, int]] = {}
        """For every remote world, the world that contains its iframe, and the iframe's index there."""
        self._paths: dict[World, str] = {}
        self._crash = asyncio.Event()
        page.on("crash", self._crashed)

    def _crashed(self, _page: Page) -> None:
        self._crash.set()

    async def observe(
        self, *, screenshot: bool = False, tabs: tuple[Tab, ...] = (), boxes: bool = False
    ) -> Observation:
        """Observes the page within `settings.timeout_s`. `screenshot` implies `boxes`, which fills `Element.box`.

        Raises PageHung if the main frame does not answer in time (the caller closes the page), PageCrashed if its
        renderer died. An iframe that does not answer in time is omitted and named in the note.
        """
        observing = asyncio.ensure_future(self._observe(boxes or screenshot, screenshot, tabs))
        crash = asyncio.ensure_future(self._crash.wait())
        try:
            await asyncio.wait({observing, crash}, return_when=asyncio.FIRST_COMPLETED)
            if self._crash.is_set():
                raise PageCrashed("the renderer of the page died")
            return await observing
        finally:
            observing.cancel()
            crash.cancel()

    async def forget_appearances(self) -> None:
        """Forgets the appearance of controls before they were pressed: another episode begins in the same document."""
        world = await self._frames.main(self._settings.timeout_s)
        with suppress(WorldGone):  # another document, which knows none
            await world.call("forgetAppearances", timeout_s=self._settings.timeout_s)

    async def _observe(self, boxes: bool, screenshot: bool, tabs: tuple[Tab, ...]) -> Observation:
        notes: list[str] = []
        budget = self._settings.max_chars
        deadline = time.monotonic() + self._settings.timeout_s
        part = await self._observe_processes(await self._frames.main(self._settings.timeout_s), deadline, boxes, notes)
        total = sum(piece.answer["full"] for piece in _parts(part))
        if part.remotes and total > budget:
            await self._share(part, budget, deadline)
        unread = sum(piece.answer["unread"] for piece in _parts(part))
        if unread:
            notes.append(f"{unread} elements could not be read")
        unexamined = sum(len(piece.world.unexamined) for piece in _parts(part))
        if unexamined:
            notes.append(f"{unexamined} elements that may be clickable were not examined yet")
        return await self._observation(part, notes, screenshot, tabs)

    async def _observe_processes(self, main: World, deadline: float, boxes: bool, notes: list[str]) -> Part:
        self._holders.clear()
        self._paths.clear()
        half = time.monotonic() + self._settings.timeout_s / 2
        part = await self._observe_process(main, "", deadline, boxes)
        await self._observe_remotes(part, min(half, deadline), boxes, notes)
        return part

    async def _observe_process(self, world: World, path: str, deadline: float, boxes: bool) -> Part:
        """Observes one process; enters the new document if the page navigates meanwhile."""
        for attempt in range(3):
            try:
                args = (self._page_settings(boxes), self._settings.max_chars, LISTED)
                answer = await observe_process(world, args, lambda: _left(deadline))
                self._paths[world] = path
                if answer["left"]:
                    answer["text"] += f"\n… {answer['left']} more parts of this page were not read (find text)"
                return Part(world, path, answer)
            except WorldGone as gone:
                world.leave()
                if attempt == 2:
                    raise PageHung(f"the page kept navigating: {gone}") from gone
        raise AssertionError("unreachable")

    async def _observe_remotes(self, part: Part, deadline: float, boxes: bool, notes: list[str]) -> None:
        indexes = [i for i, frame in enumerate(part.answer["frames"]) if frame["remote"]]
        parts = await asyncio.gather(*(self._observe_remote(part, i, deadline, boxes, notes) for i in indexes))
        for index, remote in zip(indexes, parts, strict=True):
            if remote is not None:
                part.remotes[index] = remote

    async def _observe_remote(
        self, part: Part, index: int, deadline: float, boxes: bool, notes: list[str]
    ) -> Part | None:
        frame = part.answer["frames"][index]
        path = joined(part.path, frame["path"])
        world: World | None = None
        try:
            world = await self._frames.remote(part.world, index, _left(deadline))
            if world is None or self._bars(part, index, await self._frames.address(world, _left(deadline))):
                return None
            remote = await self._observe_process(world, path, deadline, boxes)
            if self._bars(part, index, remote.answer["url"]):  # it navigated between the two calls
                del self._paths[world]
                return None
            if boxes or self._settings.boxes or remote.answer["surfaces"]:
                left, top = await part.world.call("frameOrigin", index, timeout_s=_left(deadline))
                remote.origin = (part.origin[0] + left, part.origin[1] + top)
        except EnvError as error:
            notes.append(f"frame {path} was left out: {error}")
            if world is not None:
                await self._frames.forget(world)
            return None
        self._holders[world] = (part.world, index)
        await self._observe_remotes(remote, deadline, boxes, notes)
        return remote

    def _bars(self, part: Part, index: int, url: str) -> bool:
        """Whether the document at *url* may not be read as iframe *index*; if so, its origin is recorded in *part*."""
        if urlsplit(url).scheme not in ("http", "https") or self._allowed(url):
            return False
        part.barred[index] = str(origin_of(url) or "an address with a name or password")
        return True

    def _page_settings(self, boxes: bool) -> dict[str, Any]:
        settings = self._settings
        return {
            "skip": settings.skip,
            "collapseRows": settings.collapse_rows,
            "nameChars": settings.name_chars,
            "maxOptions": settings.max_options,
            "boxes": boxes or settings.boxes,
            "effects": settings.effects,
            "walkMs": settings.timeout_s * 1000 * WALK_SHARE,
        }

    async def _share(self, part: Part, budget: int, deadline: float) -> None:
        """Divides the text budget: remote frames share at most half of it equally; the page gets the rest."""
        remotes = list(_parts(part))[1:]
        each = budget // (2 * len(remotes))
        used = sum(min(remote.answer["full"], each) for remote in remotes)
        shares = [(part, budget - used), *((remote, each) for remote in remotes)]
        await asyncio.gather(*(self._relay_out(shared, share, deadline) for shared, share in shares))

    async def _relay_out(self, part: Part, budget: int, deadline: float) -> None:
        part.answer.update(await part.world.call("relayOut", budget, LISTED, timeout_s=_left(deadline)))

    async def _observation(self, part: Part, notes: list[str], screenshot: bool, tabs: tuple[Tab, ...]) -> Observation:
        self._numbering = numbering = Numbering()
        text = storable(merged_text(part, numbering))
        add_elements(part, numbering)
        answer = part.answer
        url, elements = storable(answer["url"]), tuple(numbering.elements)
        return Observation(
            url=url,
            title=storable(answer["title"]),
            text=text,
            elements=elements,
            tabs=tabs,
            digest=page_digest(url, text, elements),
            viewport=(answer["viewport"][0], answer["viewport"][1]),
            scroll=(answer["scroll"][0], answer["scroll"][1]),
            controls_total=sum(piece.answer["total"] for piece in _parts(part)),
            screenshot=await self._screenshot() if screenshot else None,
            note="; ".join(notes),
            document=part.world.document,
            surfaces=tuple(surface for piece in _parts(part) for surface in surfaces_of(piece)),
        )

    async def _screenshot(self) -> bytes:
        timeout_s = self._settings.timeout_s
        shot = self._page.screenshot(type="png", animations="allow", caret="initial", timeout=timeout_s * 1000)
        try:
            return await bounded(shot, timeout_s + 1, "a screenshot")
        except PlaywrightError as error:
            raise PageHung(f"no screenshot within {timeout_s:.1f} s: {error.message.splitlines()[0]}") from error

    async def resolve(self, ref: int) -> Target | ActionResult:
        """Resolves `[ref]` to the live element; a result with STALE, AMBIGUOUS or NO_SUCH_REF if that fails."""
        if not 0 < ref <= len(self._numbering.places):
            return ActionResult(status=Status.NO_SUCH_REF, reason=Reason.UNKNOWN_REF, message=NO_SUCH_NUMBER)
        place, element = self._numbering.places[ref - 1], self._numbering.elements[ref - 1]
        return await self._target(place.world, place.id, element.key)

    async def _target(self, world: World, id_: int, key: ElementKey) -> Target | ActionResult:
        timeout_s = self._settings.timeout_s
        path = self._paths.get(world, "")
        inner = key.frame[len(path) + 1 :] if path else key.frame
        target = {"frame": inner, "role": key.role, "name": key.name, "ordinal": key.ordinal, "digest": key.digest}
        try:
            match = await world.call_for_object("resolve", id_, target, timeout_s=timeout_s)
            if "objectId" not in match:
                status = Status(match["value"])
                reason, message = _UNRESOLVED[status]
                return ActionResult(status=status, reason=reason, message=message.format(f"{key.role} {key.name!r}"))
            facts = json.loads(await world.call_with_objects("facts", [match["objectId"]], timeout_s))
            holders = await self._holders_of(world)
        except WorldGone:
            world.leave()
            message = f"the page was replaced since {key.role} {key.name!r} was shown; look again"
            return ActionResult(status=Status.STALE, reason=Reason.PAGE_REPLACED, message=message)
        states = tuple(facts["states"])
        return Target(key, facts["tag"], facts["type"], states, world, match["objectId"], holders, timeout_s)

    async def _holders_of(self, world: World) -> tuple[Holder, ...]:
        holders: list[Holder] = []
        while world in self._holders:
            world, index = self._holders[world]
            if world.is_fresh:
                raise WorldGone("the page around the frame was replaced")
            iframe = await world.call_for_object("frameHolder", index, timeout_s=self._settings.timeout_s)
            holders.append(Holder(world, iframe["objectId"]))
        return tuple(holders)

    async def drawn(self, timeout_s: float) -> Drawn:
        """Returns all text that the tab draws, see :func:`envs.observer.drawn.drawn`."""
        return await drawn(self._frames, self._page, timeout_s)

    async def find(self, text: str, vault: SecretVault = NO_SECRETS) -> str:
        """Returns the lines of the page that contain *text*, also hidden ones, up to FIND_CHARS; their refs are valid.

        If *vault* has secrets, the masked lines are searched, so that no answer depends on a secret's value.
        """
        parts: list[str] = []
        shown = of = left = silent = 0
        room = FIND_CHARS
        for world, path in list(self._paths.items()):
            answer = await self._lines_with(world, text, vault, room)
            if answer is None:
                silent += 1
                continue
            left += answer["left"]
            if not answer["of"]:
                continue
            shown, of = shown + answer["count"], of + answer["of"]
            lines = self._merged(Part(world, path, answer))
            parts.append(lines)
            room = max(0, room - len(lines))
        unread = f" ({left} parts of the page were not searched)" if left else ""
        unread += f" ({silent} documents were replaced and not searched: look again)" if silent else ""
        if not of:
            return f"no line holds {text!r}{unread}"
        head = f"{of} lines hold {text!r}" if of > 1 else f"1 line holds {text!r}"
        rest = f", the first {shown} follow; a longer text narrows it" if shown < of else ""
        return "\n".join([f"{head}{rest}{unread}:", *parts])

    async def _lines_with(self, world: World, text: str, vault: SecretVault, room: int) -> dict[str, Any] | None:
        if not vault:
            return await self._ask(world, "find", storable(text), room)
        lines = await self._ask(world, "lines")
        if lines is None:
            return None
        masked, query = vault.mask_lines(lines["texts"]), " ".join(text.split()).lower()
        hits = [index for index, line in enumerate(masked) if query and query in line.lower()]
        return await self._ask(world, "tellLines", hits, room)

    async def control_at(self, x: float, y: float) -> int | None:
        """Returns the number of the control of the last observation that a click at a point of the view (CSS pixels)
        reaches; None if it reaches none that has a number. Raises WorldGone if the page was replaced, and PageMoved if
        that control is not where it was."""
        world = next((world for world, path in self._paths.items() if not path and world not in self._holders), None)
        while world is not None:
            found = await world.call("controlAt", x, y, timeout_s=self._settings.timeout_s)
            if "frame" not in found:
                return self._unmoved(world, found) if "id" in found else None
            holder, (x, y) = (world, found["frame"]), (found["x"], found["y"])
            world = next((inner for inner, outer in self._holders.items() if outer == holder), None)
        return None

    def _unmoved(self, world: World, found: dict[str, Any]) -> int | None:
        """The number of the control that was *found*. The origin of another process's frame is not compared."""
        ref = self._numbering.refs.get(Place(world, found["id"]))
        box = None if ref is None else self._numbering.elements[ref - 1].box
        if box is None or found["box"] is None:
            return ref
        now, then = (found["box"][2:], box[2:]) if world in self._holders else (found["box"], box)
        if any(abs(a - b) > MOVED for a, b in zip(now, then, strict=True)):
            raise PageMoved("a control is not where it was observed")
        return ref

    async def differs(self) -> bool:
        """Whether the page differs from its last observation by more than clocks, tokens and the focus.

        True for a page that was not observed or was replaced; False for one that does not answer, e.g. because it waits
        for a request."""
        if not self._paths:
            return True
        answers = await asyncio.gather(*(self._differences(world) for world in self._paths))
        return any(pairs is None or any(steady_text(a) != steady_text(b) for a, b in pairs) for pairs in answers)

    async def _differences(self, world: World) -> list[tuple[str, str]] | None:
        if world.is_fresh:
            return None
        try:
            return await world.call("differs", timeout_s=self._settings.timeout_s)
        except PageHung:
            return []
        except WorldGone:
            world.leave()
            return None

    async def reacts(self, timeout_s: float) -> bool:
        """Whether scripts of the page listen to clicks, keys or text, as far as the last observation found out.

        False for a page that does not answer."""
        if any(world.listeners or world.text_listeners for world in self._paths):
            return True
        try:
            main = await self._frames.main(timeout_s)
            return not main.is_fresh and bool(await main.window_listeners(timeout_s))
        except EnvError:
            return False

    async def listens_to_focused(self, timeout_s: float) -> bool:
        """Whether scripts listen to what is typed into the focused field of the main document."""
        try:
            main = await self._frames.main(timeout_s)
        except EnvError:
            return False
        return await listens_to_text(main, None, entered=True, timeout_s=timeout_s)

    async def scroll_page(self, dx: float, dy: float) -> bool:
        """Scrolls the page, else its largest scrollable box, by shares of what it shows; True if something moved."""
        timeout_s = self._settings.timeout_s
        world = await self._frames.main(timeout_s)
        observed = not world.is_fresh
        try:
            moved = await world.call("scrollPage", dx, dy, timeout_s=timeout_s)
        except WorldGone:
            world.leave()
            observed = False
            moved = await world.call("scrollPage", dx, dy, timeout_s=timeout_s)
        if not observed:
            world.leave()  # the next observation enters the document, as it has to read the listeners then
        return bool(moved)

    async def expand(self, group: str, start: int) -> str:
        """Returns the rows of group `g1`, `g2` … of the last observation from row *start*, up to FIND_CHARS."""
        number = group.removeprefix("g")
        if not number.isdecimal() or not 0 < int(number) <= len(self._numbering.groups):
            there = ", ".join(f"g{n}" for n in range(1, min(len(self._numbering.groups), 9) + 1))
            return f"there is no group of this name in the last observation; it has {there or 'none'}"
        place = self._numbering.groups[int(number) - 1]
        answer = await self._ask(place.world, "expand", place.id, max(1, start), FIND_CHARS)
        if answer is None:
            return "the page was replaced since it was shown; look again"
        if not answer["count"]:
            return f"{group} has {answer['rows']} rows; there is no row {start}"
        end = start + answer["count"] - 1
        text = self._merged(Part(place.world, self._paths.get(place.world, ""), answer))
        more = f"; expand {group} from {end + 1} for more" if end < answer["rows"] else ""
        return f"{group}: {answer['kind']} {start}-{end} of {answer['rows']}{more}\n{text}"

    async def _ask(self, world: World, name: str, *args: object) -> dict[str, Any] | None:
        if world.is_fresh:
            return None
        try:
            return await world.call(name, *args, timeout_s=self._settings.timeout_s)
        except WorldGone:
            world.leave()
            return None

    def _merged(self, part: Part) -> str:
        text = storable(merged_text(part, self._numbering))
        add_elements(part, self._numbering)
        return text


_UNRESOLVED = {
    Status.STALE: (
        Reason.STALE_ELEMENT,
        "{} is gone or is now called otherwise; nothing was touched, look at the page again",
    ),
    Status.AMBIGUOUS: (
        Reason.AMBIGUOUS_ELEMENT,
        "several elements now fit {}; none was touched, look at the page again",
    ),
}


def _left(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())


def _parts(part: Part) -> list[Part]:
    return [part, *(inner for remote in part.remotes.values() for inner in _parts(remote))]


def page_digest(url: str, text: str, elements: tuple[Element, ...]) -> str:
    """See :attr:`envs.core.observation.Observation.digest`."""
    seen = json.dumps([url, text, [element.value for element in elements]])
    return hashlib.sha256(seen.encode()).hexdigest()[:16]
