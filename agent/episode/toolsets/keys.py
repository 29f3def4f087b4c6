"""Names of keys as the vendors' models write them, in Playwright's notation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

_NAMES: Final[Mapping[str, str]] = {
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


def chord(names: Sequence[str]) -> str | None:
    """`["ctrl", "a"]` as `Control+a`; None if a name is not known."""
    keys = [_key(name) for name in names]
    return "+".join(key for key in keys if key) if keys and all(keys) else None


def chords(text: str) -> list[str] | None:
    """`BackSpace BackSpace` and `ctrl+a` as a list of chords, in order; None if a name is not known."""
    if text.strip() == "" and text:
        return ["Space"] * len(text)
    found = [chord(_split(word)) for word in text.split()]
    return [each for each in found if each is not None] if found and None not in found else None


def _split(word: str) -> list[str]:
    """The keys of one chord; a `+` at its end is a key itself."""
    if word.endswith("+") and len(word) > 1:
        return [*filter(None, word[:-1].split("+")), "+"]
    return word.split("+") if word != "+" else ["+"]


def _key(name: str) -> str | None:
    if len(name) == 1 and name.isprintable():
        return "Space" if name == " " else name
    return _NAMES.get(name.strip().lower())
