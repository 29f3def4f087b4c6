"""Tells whether scripts of a page listen to what is typed into a field.

Such a page may answer late: many fetch suggestions or filter a list by a timer that starts at the last key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from envs.core.errors import EnvError

if TYPE_CHECKING:
    from envs.observer.world import World

TEXT: Final = 1
KEY: Final = 2
CHANGE: Final = 4
"""The groups, one bit each; `read_back.js` contains the same numbers. At the root of a page, keys are shortcuts and do
not count."""
_GROUP_OF: Final[Mapping[str, int]] = {
    **dict.fromkeys(("input", "beforeinput", "textInput", "compositionend", "search", "keyup"), TEXT),
    **dict.fromkeys(("keydown", "keypress"), KEY),
    "change": CHANGE,
}
MOST_NODES: Final = 100
"""Nodes with such listeners that are examined; the rest count as not listening."""


def text_groups_by_node(listeners: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Returns groups by the backend id of the listening node, from `DOMDebugger.getEventListeners`."""
    groups: dict[int, int] = {}
    for listener in listeners:
        if (group := _GROUP_OF.get(listener["type"], 0)) and (node := listener.get("backendNodeId")):
            groups[node] = groups.get(node, 0) | group
    return groups


async def listens_to_text(world: World, field: str | None, *, entered: bool, timeout_s: float) -> bool:
    """Whether a listener reacts to text that is typed into *field*, a remote object; None: into the focused field.

    *entered*: Enter is pressed as well. False for a page that does not answer and for listeners of the window."""
    known = dict(list(world.text_listeners.items())[:MOST_NODES])
    if not known or world.is_fresh:
        return False
    try:
        nodes = await asyncio.gather(*(world.adopt_node(id_, timeout_s) for id_ in known))
        values = (list(known.values()), entered)
        return bool(await world.call_with_objects("listensToText", [field, *nodes], timeout_s, values))
    except EnvError:
        return False
