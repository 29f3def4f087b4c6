"""In-page programs: the parts of one, as an expression to evaluate in an isolated world."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "in_page"


def pristine() -> str:
    """Statements that define the getters and methods by which a page is read, for a program that is no world's own."""
    return (_FOLDER / "pristine.js").read_text(encoding="utf-8")


@cache
def program(parts: tuple[str, ...], calls: str) -> str:
    """One expression that leaves *calls* (names, separated by commas) of these files in the world's global `mira`.

    `pristine.js` comes first in each: it holds the getters and methods by which the others read the page.
    """
    text = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in ("pristine.js", *parts))
    return f"(() => {{ 'use strict';\n{text}\nglobalThis.mira = {{ {calls} }};\n}})()"
