"""Normalises texts as WebArena-Verified does before comparing them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress

from envs.suites.webarena.evaluators.original.readers import Unreadable
from envs.suites.webarena.folding import fold

Derender = Callable[[str], str]
"""Replaces addresses by placeholders such as `__SHOPPING__`."""

_MARKS = dict.fromkeys(map(ord, "™®℠©"))
_HYPHENS = "[-\u00ad‐‑‒–—―−]"
_HYPHEN = re.compile(rf"(?<=[a-zA-Z]){_HYPHENS}|{_HYPHENS}(?=[a-zA-Z])")
_WHITE = str.maketrans("\t\n\r", "   ")


def is_pattern(value: object) -> bool:
    """True for a text between `^` and `$`, which is a regular expression."""
    return isinstance(value, str) and len(value) >= 2 and value.startswith("^") and value.endswith("$")


def normal(text: str, derender: Derender) -> str:
    """*text* in lower-case ASCII with single spaces, a hyphen beside a letter as a space; a pattern unchanged."""
    if not text or is_pattern(text):
        return text
    if "http" in text:
        with suppress(Unreadable):
            text = derender(text)
    text = unicodedata.normalize("NFKC", text.translate(_MARKS))
    text = _HYPHEN.sub(" ", text).translate(_WHITE)
    text = "".join(character for character in text if not unicodedata.category(character).startswith("C"))
    return re.sub(r"\s+", " ", fold(text).strip()).casefold()
