"""How libwebarena 0.0.5 compares texts."""

from __future__ import annotations

import re

_APART = r"[\s()\[\]{}<>;@#$%&?!*\"“”‘’„«»`‒–—―]|''|--|\.\."
"""What stands between words whatever is around it."""
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
    """Is the reference a part of *text*? *alone*: a single character must be a word of its own."""
    wanted, found = clean(reference), clean(text)
    if alone and len(wanted) == 1:
        return is_word(wanted, found)
    return wanted in found


def is_word(character: str, text: str) -> bool:
    """Is *character* one of the words that NLTK's tokenizer finds in *text* (all in lower case)?

    A full stop behind it belongs to it, unless a sentence ends there: at the end, or before a number or a sign. NLTK
    takes a lower-case word after `2.` for the same sentence.
    """
    return re.search(rf"{_LEFT}{re.escape(character)}(?:{_RIGHT}|{_STOP})", text) is not None
