"""Builds in-page programs as expressions to evaluate in an isolated world."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "in_page"


def pristine() -> str:
    """Returns the statements of `pristine.js` (getters and methods for reading a page), for other programs."""
    return (_FOLDER / "pristine.js").read_text(encoding="utf-8")


@cache
def program(parts: tuple[str, ...], calls: str) -> str:
    """Returns an expression that stores the functions *calls* (comma-separated names) of these files in the global
    `mira` of its world.

    `pristine.js` comes first: it defines the getters and methods with which the other files read the page.
    """
    text = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in ("pristine.js", *parts))
    return f"(() => {{ 'use strict';\n{text}\nglobalThis.mira = {{ {calls} }};\n}})()"
