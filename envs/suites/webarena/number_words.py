"""Parses numbers written in English words."""

from __future__ import annotations

from itertools import pairwise

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {word: n for n, word in enumerate(_ONES)} | {word: 10 * n for n, word in enumerate(_TENS, 2)}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_KNOWN = {*_WORDS, *_SCALES, "point"}


def number_in_words(text: str, *, alone: bool = True) -> float | None:
    """Parses `twenty-three` as 23. *alone*: other words than these and `and` are invalid; else they are skipped."""
    tokens = text.lower().replace("-", " ").split()
    words = [word for word in tokens if word in _KNOWN]
    if not words or (alone and any(word not in _KNOWN and word != "and" for word in tokens)):
        return None
    integer, _, decimals = " ".join(words).partition("point")
    scales = [_SCALES[word] for word in integer.split() if _SCALES.get(word, 0) > 100]
    if any(first <= second for first, second in pairwise(scales)):
        return None
    return _integer(integer.split()) + _fraction(decimals.split())


def _integer(words: list[str]) -> int:
    total = group = 0
    for word in words:
        if word == "hundred":
            group = max(group, 1) * 100
        elif word in _SCALES:
            total, group = total + max(group, 1) * _SCALES[word], 0
        else:
            group += _WORDS[word]
    return total + group


def _fraction(words: list[str]) -> float:
    digits = [_WORDS.get(word, 10) for word in words]
    return float("0." + "".join(map(str, digits))) if digits and max(digits) < 10 else 0.0
