"""Letters without their accents, and texts without the punctuation around them."""

from __future__ import annotations

import unicodedata

EDGES = "'\"`.,;:!?"
"""Punctuation that does not count at the beginning and at the end of a text."""

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
    """*text* without accents; letters that have no ASCII form stay."""
    if text.isascii():
        return text
    spread = unicodedata.normalize("NFKD", text.translate(_LATIN))
    return "".join(character for character in spread if not unicodedata.combining(character))


def fold(text: str) -> str:
    """*text* in ASCII: accents are taken off, common signs are spelled out, whatever else has no ASCII form is lost.

    Less than a transliteration: of Greek, Cyrillic or Chinese nothing is left.
    """
    if text.isascii():
        return text
    return plain_letters(text.translate(_ASCII)).encode("ascii", "ignore").decode("ascii")


def bare(text: str) -> str:
    """*text* without the punctuation and the quotes around it."""
    return text.strip(EDGES)
