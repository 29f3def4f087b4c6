"""How WebArena-Verified reduces a text before it compares it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress

from envs.suites.webarena.evaluators.original.readers import Unreadable
from envs.suites.webarena.folding import fold

Derender = Callable[[str], str]
"""Puts placeholders such as `__SHOPPING__` in the place of addresses."""

_MARKS = dict.fromkeys(map(ord, "™®℠©"))
_HYPHENS = "[-\u00ad‐‑‒–—―−]"
_HYPHEN = re.compile(rf"(?<=[a-zA-Z]){_HYPHENS}|{_HYPHENS}(?=[a-zA-Z])")
_WHITE = str.maketrans("\t\n\r", "   ")


def is_pattern(value: object) -> bool:
    """A text between `^` and `$` is a regular expression."""
    return isinstance(value, str) and len(value) >= 2 and value.startswith("^") and value.endswith("$")


def normal(text: str, derender: Derender) -> str:
    """*text* in lower-case ASCII with single blanks, a hyphen beside a letter as a blank; a pattern as it is."""
    if not text or is_pattern(text):
        return text
    if "http" in text:
        with suppress(Unreadable):
            text = derender(text)
    text = unicodedata.normalize("NFKC", text.translate(_MARKS))
    text = _HYPHEN.sub(" ", text).translate(_WHITE)
    text = "".join(character for character in text if not unicodedata.category(character).startswith("C"))
    return re.sub(r"\s+", " ", fold(text).strip()).casefold()
