"""Names of keys in Playwright's notation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

KEY_NAMES: Final[Mapping[str, str]] = {
    "return": "Enter",
    "enter": "Enter",
    "kp_enter": "Enter",
    "tab": "Tab",
    "escape": "Escape",
    "esc": "Escape",
    "backspace": "Backspace",
    "delete": "Delete",
    "del": "Delete",
    "insert": "Insert",
    "space": "Space",
    "up": "ArrowUp",
    "down": "ArrowDown",
    "left": "ArrowLeft",
    "right": "ArrowRight",
    "arrowup": "ArrowUp",
    "arrowdown": "ArrowDown",
    "arrowleft": "ArrowLeft",
    "arrowright": "ArrowRight",
    "home": "Home",
    "end": "End",
    "pageup": "PageUp",
    "page_up": "PageUp",
    "prior": "PageUp",
    "pagedown": "PageDown",
    "page_down": "PageDown",
    "next": "PageDown",
    "ctrl": "Control",
    "control": "Control",
    "shift": "Shift",
    "alt": "Alt",
    "option": "Alt",
    "cmd": "Meta",
    "command": "Meta",
    "meta": "Meta",
    "super": "Meta",
    "win": "Meta",
    "minus": "-",
    "plus": "+",
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
}
"""Names as people and models write them, in lower case, and Playwright's."""


def named_keys(text: str) -> str:
    """A key or chord with its names in Playwright's notation: `ctrl+a` as `Control+a`. Other names stay as they are."""
    return re.sub(r"[^+]+", lambda part: _named(part[0], chord="+" in text), text)


def _named(name: str, *, chord: bool) -> str:
    bare = name.strip(" ")
    return KEY_NAMES.get(bare.lower(), (bare if chord else "") or name)
