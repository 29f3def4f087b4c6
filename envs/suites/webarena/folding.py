"""Removes accents from letters, and punctuation at the ends of texts."""

from __future__ import annotations

import unicodedata

EDGES = "'\"`.,;:!?"
"""Punctuation that is ignored at the beginning and at the end of a text."""

_LETTERS = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i", "ħ": "h"}
_SIGNS = {
    **dict.fromkeys("‘’‚‛′", "'"),
    **dict.fromkeys("“”„‟″", '"'),
    **dict.fromkeys("‐‑‒–−", "-"),
    **dict.fromkeys("—―", "--"),
    **{
        "…": "...",
        "×": "x",
        "÷": "/",
        "⁄": "/",
        "·": "*",
        "•": "*",
        "«": "<<",
        "»": ">>",
        "¿": "?",
        "¡": "!",
        "°": "deg",
    },
    **{"€": "EUR", "£": "PS", "¥": "Y="},
}
_CAPITALS = {letter.upper(): text.upper() for letter, text in _LETTERS.items() if letter not in "ßı"}
_LATIN = str.maketrans(_LETTERS | _CAPITALS)
_ASCII = str.maketrans(_SIGNS)


def plain_letters(text: str) -> str:
    """*text* without accents; letters without an ASCII form are kept."""
    if text.isascii():
        return text
    spread = unicodedata.normalize("NFKD", text.translate(_LATIN))
    return "".join(character for character in spread if not unicodedata.combining(character))


def fold(text: str) -> str:
    """*text* in ASCII: removes accents, spells out common signs, and drops other characters without an ASCII form.

    This is no transliteration: Greek, Cyrillic and Chinese text is dropped.
    """
    if text.isascii():
        return text
    return plain_letters(text.translate(_ASCII)).encode("ascii", "ignore").decode("ascii")


def bare(text: str) -> str:
    """*text* without punctuation and quotes at its ends."""
    return text.strip(EDGES)
