"""Compares texts as libwebarena 0.0.5 does."""

from __future__ import annotations

import re

_APART = r"[\s()\[\]{}<>;@#$%&?!*\"“”‘’„«»`‒–—―]|''|--|\.\."
"""Separators of words in every context."""
_LEFT = rf"(?:^|{_APART}|(?<![\w'])')"
_RIGHT = rf"(?:$|{_APART}|[:,](?!\d)|'(?:s|m|d|ll|re|ve)?(?:{_APART}|$))"
_STOP = r"\.(?=[\])}>\"'\s»”’]*$|\s+[^\s\w.,:;!?]|\s+\d)"


def clean(text: str) -> str:
    """Lower case, without one pair of quotes around it."""
    text = text.strip()
    for quote in "'\"":
        if text.startswith(quote) and text.endswith(quote):
            return text[1:-1].lower()
    return text.lower()


def same(reference: str, answer: str) -> bool:
    return clean(answer) == clean(reference)


def includes(reference: str, text: str, *, alone: bool = False) -> bool:
    """True if *text* contains the reference. *alone*: a single character must be a separate word."""
    expected, actual = clean(reference), clean(text)
    if alone and len(expected) == 1:
        return is_word(expected, actual)
    return expected in actual


def is_word(character: str, text: str) -> bool:
    """True if *character* is one of the words of NLTK's tokenizer in *text* (all in lower case).

    A full stop after it belongs to it, unless a sentence ends there: at the end, or before a number or a sign. For
    NLTK, a lower-case word after `2.` belongs to the same sentence.
    """
    return re.search(rf"{_LEFT}{re.escape(character)}(?:{_RIGHT}|{_STOP})", text) is not None
