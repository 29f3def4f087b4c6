"""One look into one process, and what only the browser can tell it: closed shadow roots, and who listens to clicks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from envs.core.errors import PageHung
from envs.observer.listening import ANY, groups_by_node, groups_of
from envs.observer.world import World, WorldGone

POINTER_EVENTS = frozenset(
    {"click", "mousedown", "mouseup", "pointerdown", "pointerup", "dblclick", "touchstart", "touchend", "dragstart"}
)
"""A node that listens to one of these is clickable even if nothing else says so."""
LOOKS = 3
"""A closed root may hold a closed root: so often the page is looked at again."""
MAX_SCANNED_NODES = 30_000
"""On larger pages the listener scan is left out: its answer would be megabytes."""
MAX_LISTENERS = 5_000
"""Where more nodes listen, they are scanned once a document and not at every look."""
BATCH = 100
"""Listening nodes resolved at once."""
EXTRA_SHARE = 0.3
"""Part of the time left that a look may spend on what is hidden; the rest is left to the next look."""


async def look(world: World, args: tuple[Any, ...], left_s: Callable[[], float]) -> dict[str, Any]:
    """One process's answer to `observe`, repeated (at most LOOKS times) until it meets nothing hidden that is new.

    Raises PageHung only where the page does not answer at all: closed roots and listeners that cannot be asked for in
    time are left to the next look.
    """
    await world.release(left_s())
    answer: dict[str, Any] = {}
    for _ in range(LOOKS):
        before_s = left_s()
        answer = await _observe(world, args, left_s)
        took_s = before_s - left_s()
        enough_s = left_s() * (1 - EXTRA_SHARE)
        try:
            if not await _adopt(world, answer, lambda bound=enough_s: left_s() - bound) or left_s() < 3 * took_s:
                break
        except PageHung:
            break
    if _wants_effects(args):
        await _tell_who_hears(world, args, answer, left_s)
    return answer


def _wants_effects(args: tuple[Any, ...]) -> bool:
    return bool(args[0]["effects"])


async def _tell_who_hears(
    world: World, args: tuple[Any, ...], answer: dict[str, Any], left_s: Callable[[], float]
) -> None:
    """Hands the page program the listeners that are new, and takes the controls again, told with them.

    What cannot be handed over in time is left in `world.unheard`: until then every control counts as heard.
    """
    try:
        told = dict(list(world.unheard.items())[:MAX_LISTENERS])
        groups = world.window_groups | await _frame_groups(world, answer, left_s)
        if not told and groups == world.window_hears:
            return
        ids = list(told)
        nodes: list[str | None] = []
        for start in range(0, len(ids), BATCH):
            nodes += await asyncio.gather(*(world.adopt_node(one, left_s()) for one in ids[start : start + BATCH]))
        await world.call_with_objects("adoptHearing", nodes, left_s(), (groups, list(told.values())))
        answer.update(await world.call("relayOut", *args[1:], timeout_s=left_s()))
    except PageHung:
        return
    world.window_hears = groups
    world.hearing |= told
    for one in ids:
        del world.unheard[one]


async def _frame_groups(world: World, answer: dict[str, Any], left_s: Callable[[], float]) -> int:
    """What the windows of the frames that the look walked into listen to; a page that is not scanned is not asked."""
    groups = 0
    for index, frame in enumerate(answer["frames"] if not world.is_large else ()):
        if not frame["remote"]:
            groups |= await _groups_of_frame(world, index, left_s())
    return groups


async def _groups_of_frame(world: World, index: int, timeout_s: float) -> int:
    """What the window of one frame listens to; everything, where the frame is just coming or going."""
    try:
        holder = await world.call_for_object("frameHolder", index, timeout_s=timeout_s)
        return groups_of(await world.frame_listeners(holder["objectId"], timeout_s))
    except WorldGone:
        return ANY


async def _adopt(world: World, answer: dict[str, Any], left_s: Callable[[], float]) -> bool:
    """Hands the page program what it cannot see; true where another look would show more."""
    roots = await _adopt_roots(world, left_s()) if answer["hosts"] else False
    return await _adopt_listeners(world, left_s) or roots


async def _observe(world: World, args: tuple[Any, ...], left_s: Callable[[], float]) -> dict[str, Any]:
    """The answer; nodes that were found to listen meanwhile wait in `world.unexamined`."""
    if world.is_fresh:  # the size of the page decides whether it is scanned
        answer: dict[str, Any] = await world.call("observe", *args, timeout_s=left_s())
        world.is_large = answer["nodes"] > MAX_SCANNED_NODES
        await _scan(world, left_s() * EXTRA_SHARE, effects=_wants_effects(args))
        return answer
    answer, _ = await asyncio.gather(
        world.call("observe", *args, timeout_s=left_s()),
        _scan(world, left_s() * EXTRA_SHARE, effects=_wants_effects(args)),
    )
    return answer


async def _scan(world: World, timeout_s: float, *, effects: bool) -> None:
    """Asks who listens, unless that is or turns out to be too much to ask at every look."""
    if world.is_large:
        return
    try:
        if effects:
            found, of_window = await asyncio.gather(world.all_listeners(timeout_s), world.window_listeners(timeout_s))
            world.window_groups = groups_of(of_window)
        else:
            found = await world.all_listeners(timeout_s)
    except (PageHung, WorldGone):  # the page is too much for the browser's answer; a document that went says so itself
        world.is_large = True
        return
    ids = {one["backendNodeId"] for one in found if one["type"] in POINTER_EVENTS and "backendNodeId" in one}
    world.unexamined.extend(sorted(ids - world.listeners))
    world.listeners |= ids
    world.is_large = len(world.listeners) > MAX_LISTENERS
    if effects:
        now = groups_by_node(found)
        world.unheard = {one: groups for one, groups in now.items() if world.hearing.get(one) != groups}


async def _adopt_listeners(world: World, left_s: Callable[[], float]) -> bool:
    """Marks nodes as listening; true if the last look did not show one of them as a control."""
    seen = 0
    while world.unexamined and left_s() > 0:
        batch = world.unexamined[:BATCH]
        found = await asyncio.gather(*(world.adopt_node(one, left_s()) for one in batch))
        objects = [one for one in found if one is not None]
        if objects:
            seen += await world.call_with_objects("adoptListeners", objects, left_s())
        del world.unexamined[: len(batch)]
    return seen > 0


async def _adopt_roots(world: World, timeout_s: float) -> bool:
    """Asks the browser for the closed shadow roots of the hosts that the last look suspects to have one."""
    array = await world.call_for_object("hosts", timeout_s=timeout_s)
    listed = await world.send(
        "Runtime.getProperties", {"objectId": array["objectId"], "ownProperties": True}, timeout_s
    )
    hosts = [str(one["value"]["objectId"]) for one in listed["result"] if one["name"].isdigit()]
    found = await asyncio.gather(*(_closed_root(world, host, timeout_s) for host in hosts))
    pairs = [one for host, root in zip(hosts, found, strict=True) if root is not None for one in (host, root)]
    if pairs:
        await world.call_with_objects("adoptRoots", pairs, timeout_s)
    return bool(pairs)


async def _closed_root(world: World, host: str, timeout_s: float) -> str | None:
    try:
        described = await world.send("DOM.describeNode", {"objectId": host, "depth": 0, "pierce": True}, timeout_s)
    except WorldGone:
        return None  # the host left the page meanwhile
    for root in described["node"].get("shadowRoots", []):
        if root["shadowRootType"] == "closed":
            return await world.adopt_node(root["backendNodeId"], timeout_s)
    return None
