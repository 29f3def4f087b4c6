"""The similarity of two moves: 1 is equivalent, 0 is different, values between are undecided.

Keys, addresses and texts decide first. Links are compared by destination: two routes to one address are equivalent,
and so are two clicks, neither on a button, that led from one page to one page. Form submissions are equivalent only on
the same page. Field inputs are equivalent for the same element on the same page with the same text, regardless of case
and white space. The ordinal of an element among elements of the same name counts. Undecided: similar names on different
pages, one name with two roles, long texts in other words, and other words in a search field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from math import dist
from typing import Final

from judges.analysis.moves import Kind, Move, Page

_DIGITS: Final = re.compile(r"\d+")
_WORDS: Final = re.compile(r"\w+")
OPEN_FROM: Final = 0.5
"""Less similar moves are different, without asking a model."""
OTHER_ROLE: Final = 0.9
"""One name with two roles, such as a link that became a button."""
_SHOWING: Final = ("link", "clickable", "tab", "menuitem")
SAME_POINT_PX: Final = 12.0
LONG_TEXT_WORDS: Final = 5
"""Shorter texts in a field or an answer are compared exactly."""

SamePage = Callable[[Page, Page], bool]
"""Whether both episodes saw the same page; False if that is unknown."""


def move_similarity(one: Move, other: Move, same_page: SamePage) -> float:
    """The similarity of a move of the failed episode and one of the reference."""
    kinds = {one.kind, other.kind}
    if Kind.STOP in kinds:
        return _texts(one.value, other.value) if len(kinds) == 1 else 0.0
    if Kind.SET in kinds:
        return _same_set(one, other, same_page) if len(kinds) == 1 else 0.0
    arrived = one.kind is Kind.GO and other.kind is Kind.GO and one.after.place == other.after.place
    if arrived and not one.submits and not other.submits:
        return 1.0
    if one.before.place != other.before.place:
        return 0.0
    if _same_effect(one, other, same_page):
        return 1.0
    if arrived and one.submits and other.submits and (one.target is None) != (other.target is None):
        return 1.0  # Enter in a field, or the form's button
    if one.point is not None and other.point is not None:
        return float(dist(one.point, other.point) <= SAME_POINT_PX)
    if one.value != other.value or (one.target is None and one.verb != other.verb):
        return 0.0
    return _targets(one, other, same_page)


def _same_effect(one: Move, other: Move, same_page: SamePage) -> bool:
    """Whether both are clicks that only show a page, from one page to one page. A link that left its page unchanged led
    to that page."""
    if one.value != other.value or not (_shows(one) and _shows(other)):
        return False
    return same_page(one.before, other.before) and same_page(one.after, other.after)


def _shows(move: Move) -> bool:
    roles = _SHOWING if move.changed else ("link",)
    return move.verb == "click" and move.target is not None and move.target.role in roles


@lru_cache(maxsize=50_000)
def text_similarity(one: str, other: str) -> float:
    """Of two folded texts, regardless of word order; 0 if their numbers differ."""
    if one == other:
        return 1.0
    if _other_numbers(one, other):
        return 0.0
    return SequenceMatcher(None, _in_order(one), _in_order(other), autojunk=False).ratio()


def _same_set(one: Move, other: Move, same_page: SamePage) -> float:
    if one.search and other.search:
        similarity = text_similarity(one.value, other.value)
        return similarity if _other_numbers(one.value, other.value) else max(OPEN_FROM, similarity)
    if one.before.place != other.before.place:
        return 0.0
    return min(_texts(one.value, other.value), _targets(one, other, same_page))


def _texts(one: str, other: str) -> float:
    """Of typed texts or answers: short ones are compared exactly, longer ones may be worded differently."""
    if one == other or min(len(one.split()), len(other.split())) < LONG_TEXT_WORDS:
        return float(one == other)
    return _undecided_or_zero(text_similarity(one, other))


def _undecided_or_zero(similarity: float) -> float:
    return similarity if similarity >= OPEN_FROM else 0.0


def _targets(one: Move, other: Move, same_page: SamePage) -> float:
    mine, theirs = one.target, other.target
    if mine is None or theirs is None:
        return float(mine is theirs)
    if mine.frame != theirs.frame:
        return 0.0
    if mine.name == theirs.name:
        if mine.ordinal != theirs.ordinal:
            return 0.0 if not mine.name or mine.role == theirs.role else OPEN_FROM
        return 1.0 if mine.role == theirs.role else OTHER_ROLE
    if mine.role != theirs.role or not mine.name or not theirs.name or same_page(one.before, other.before):
        return 0.0  # two names on one page are two elements
    return _undecided_or_zero(text_similarity(mine.name, theirs.name))


def _other_numbers(one: str, other: str) -> bool:
    return sorted(_DIGITS.findall(one)) != sorted(_DIGITS.findall(other))


def _in_order(text: str) -> str:
    words: Sequence[str] = _WORDS.findall(text)
    return " ".join(sorted(words))
