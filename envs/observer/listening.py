"""Groups event listeners by the uses of a control to which they may react.

Each group is one bit; `effects.js` contains the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

PRESS: Final = 1
CHANGE: Final = 2
HOVER: Final = 4
FORM: Final = 8
FOCUS: Final = 16
KEY: Final = 32
ROUTE: Final = 64
NAVIGATE: Final = 128
ANY: Final = 255

_TYPES: Final = {
    PRESS: "click mousedown mouseup pointerdown pointerup dblclick auxclick contextmenu DOMActivate toggle "
    "beforetoggle close cancel command",
    CHANGE: "beforeinput input change search",
    HOVER: "mouseover mouseenter mousemove mouseout mouseleave pointerover pointerenter pointermove pointerout "
    "pointerleave",
    FORM: "submit reset formdata invalid",
    FOCUS: "focus focusin",
    KEY: "keydown keypress keyup textInput paste blur focusout",
    ROUTE: "hashchange popstate",
    NAVIGATE: "navigate",
}
GROUP_OF: Final[Mapping[str, int]] = {name: group for group, names in _TYPES.items() for name in names.split()}
"""The group of an event type; other types do not react to input."""


def groups_by_node(listeners: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Returns groups by the backend id of the listening node, from `DOMDebugger.getEventListeners`."""
    groups: dict[int, int] = {}
    for listener in listeners:
        group = GROUP_OF.get(listener["type"], 0)
        if group and "backendNodeId" in listener:
            groups[listener["backendNodeId"]] = groups.get(listener["backendNodeId"], 0) | group
    return groups


def groups_of(listeners: Iterable[Mapping[str, Any]]) -> int:
    """Returns the union of the groups of *listeners*."""
    groups = 0
    for listener in listeners:
        groups |= GROUP_OF.get(listener["type"], 0)
    return groups
