"""Observes one process, with data that only the browser has: closed shadow roots and event listeners."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from envs.core.errors import PageHung
from envs.observer.listening import ANY, groups_by_node, groups_of
from envs.observer.text_listeners import text_groups_by_node
from envs.observer.world import World, WorldGone

POINTER_EVENTS = frozenset(
    {"click", "mousedown", "mouseup", "pointerdown", "pointerup", "dblclick", "touchstart", "touchend", "dragstart"}
)
"""A node that listens to one of these events counts as clickable."""
HOVER_EVENTS = frozenset({"mouseenter", "mouseover", "pointerenter", "pointerover"})
"""A node that listens to one of these events may show hidden controls while the pointer is over it."""
MAX_HOVERING = 300
"""Maximum number of such nodes sent to the page program per observation."""
MAX_OBSERVATIONS = 3
"""Maximum number of observations, because closed shadow roots may be nested."""
MAX_SCANNED_NODES = 30_000
"""Larger pages are not scanned for listeners, because the answer would take megabytes."""
MAX_LISTENERS = 5_000
"""Documents with more listening nodes are scanned only once, not at every observation."""
BATCH = 100
"""Number of listening nodes that are resolved concurrently."""
EXTRA_SHARE = 0.3
"""Share of the remaining time for closed roots and listeners; the rest is examined at the next observation."""


async def observe_process(world: World, args: tuple[Any, ...], left_s: Callable[[], float]) -> dict[str, Any]:
    """Calls `observe` in one process, at most MAX_OBSERVATIONS times, until no new closed roots or listeners appear.

    Raises PageHung only if the page does not answer at all. Closed roots and listeners that cannot be read in time are
    examined at the next observation.
    """
    await world.release(left_s())
    answer: dict[str, Any] = {}
    for _ in range(MAX_OBSERVATIONS):
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
        await _send_listeners(world, args, answer, left_s)
    return answer


def _wants_effects(args: tuple[Any, ...]) -> bool:
    return bool(args[0]["effects"])


async def _send_listeners(
    world: World, args: tuple[Any, ...], answer: dict[str, Any], left_s: Callable[[], float]
) -> None:
    """Sends new listeners to the page program and reads the controls again with their effects.

    Listeners that cannot be sent in time stay in `world.new_groups`; until then every control counts as listened to.
    """
    try:
        batch = dict(list(world.new_groups.items())[:MAX_LISTENERS])
        groups = world.window_groups | await _frame_groups(world, answer, left_s)
        if not batch and groups == world.sent_window_groups:
            return
        ids = list(batch)
        nodes: list[str | None] = []
        for start in range(0, len(ids), BATCH):
            nodes += await asyncio.gather(*(world.adopt_node(id_, left_s()) for id_ in ids[start : start + BATCH]))
        await world.call_with_objects("adoptListenerGroups", nodes, left_s(), (groups, list(batch.values())))
        answer.update(await world.call("relayOut", *args[1:], timeout_s=left_s()))
    except PageHung:
        return
    world.sent_window_groups = groups
    world.sent_groups |= batch
    for id_ in ids:
        del world.new_groups[id_]


async def _frame_groups(world: World, answer: dict[str, Any], left_s: Callable[[], float]) -> int:
    """Returns the listener groups of the windows of observed frames; none for a page that is not scanned."""
    groups = 0
    for index, frame in enumerate(answer["frames"] if not world.is_large else ()):
        if not frame["remote"]:
            groups |= await _groups_of_frame(world, index, left_s())
    return groups


async def _groups_of_frame(world: World, index: int, timeout_s: float) -> int:
    """Returns the listener groups of one frame's window; all groups while the frame is created or removed."""
    try:
        holder = await world.call_for_object("frameHolder", index, timeout_s=timeout_s)
        return groups_of(await world.frame_listeners(holder["objectId"], timeout_s))
    except WorldGone:
        return ANY


async def _adopt(world: World, answer: dict[str, Any], left_s: Callable[[], float]) -> bool:
    """Sends closed roots and listeners to the page program; True if another observation would show more."""
    roots = await _adopt_roots(world, left_s()) if answer["hosts"] else False
    hovering = await _adopt_hovering(world, left_s)
    return await _adopt_listeners(world, left_s) or roots or hovering


async def _observe(world: World, args: tuple[Any, ...], left_s: Callable[[], float]) -> dict[str, Any]:
    """Returns the answer of `observe`; adds newly found listening nodes to `world.unexamined`."""
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
    """Reads the event listeners, unless the page has or turns out to have too many."""
    if world.is_large:
        return
    try:
        if effects:
            listeners, of_window = await asyncio.gather(
                world.all_listeners(timeout_s), world.window_listeners(timeout_s)
            )
            world.window_groups = groups_of(of_window)
        else:
            listeners = await world.all_listeners(timeout_s)
    except (PageHung, WorldGone):  # the page is too large; a replaced document is detected by the next call
        world.is_large = True
        return
    ids = {
        listener["backendNodeId"]
        for listener in listeners
        if listener["type"] in POINTER_EVENTS and "backendNodeId" in listener
    }
    hovering = {
        listener["backendNodeId"]
        for listener in listeners
        if listener["type"] in HOVER_EVENTS and "backendNodeId" in listener
    }
    world.unsent_hovering.extend(sorted(hovering - world.hovering))
    world.hovering |= hovering
    world.text_listeners = text_groups_by_node(listeners)
    world.unexamined.extend(sorted(ids - world.listeners))
    world.listeners |= ids
    world.is_large = len(world.listeners) > MAX_LISTENERS
    if effects:
        current = groups_by_node(listeners)
        world.new_groups = {id_: groups for id_, groups in current.items() if world.sent_groups.get(id_) != groups}


async def _adopt_listeners(world: World, left_s: Callable[[], float]) -> bool:
    """Marks nodes as listening; True if the last observation did not show one of them as a control."""
    seen = 0
    while world.unexamined and left_s() > 0:
        batch = world.unexamined[:BATCH]
        nodes = await asyncio.gather(*(world.adopt_node(id_, left_s()) for id_ in batch))
        objects = [node for node in nodes if node is not None]
        if objects:
            seen += await world.call_with_objects("adoptListeners", objects, left_s())
        del world.unexamined[: len(batch)]
    return seen > 0


async def _adopt_hovering(world: World, left_s: Callable[[], float]) -> bool:
    """Sends nodes that listen for a hover; True if one of them holds hidden parts that the last observation lacks."""
    batch = world.unsent_hovering[:MAX_HOVERING]
    if not batch:
        return False
    nodes = await asyncio.gather(*(world.adopt_node(id_, left_s()) for id_ in batch))
    objects = [node for node in nodes if node is not None]
    holding = await world.call_with_objects("adoptHovering", objects, left_s()) if objects else 0
    del world.unsent_hovering[: len(batch)]
    return holding > 0


async def _adopt_roots(world: World, timeout_s: float) -> bool:
    """Reads the closed shadow roots of elements that may have one according to the last observation."""
    array = await world.call_for_object("hosts", timeout_s=timeout_s)
    listed = await world.send(
        "Runtime.getProperties", {"objectId": array["objectId"], "ownProperties": True}, timeout_s
    )
    hosts = [str(item["value"]["objectId"]) for item in listed["result"] if item["name"].isdigit()]
    roots = await asyncio.gather(*(_closed_root(world, host, timeout_s) for host in hosts))
    pairs = [node for host, root in zip(hosts, roots, strict=True) if root is not None for node in (host, root)]
    if pairs:
        await world.call_with_objects("adoptRoots", pairs, timeout_s)
    return bool(pairs)


async def _closed_root(world: World, host: str, timeout_s: float) -> str | None:
    try:
        described = await world.send("DOM.describeNode", {"objectId": host, "depth": 0, "pierce": True}, timeout_s)
    except WorldGone:
        return None  # the host was removed meanwhile
    for root in described["node"].get("shadowRoots", []):
        if root["shadowRootType"] == "closed":
            return await world.adopt_node(root["backendNodeId"], timeout_s)
    return None
