"""How alike two moves are: 1 the same, 0 different, between them undecided.

Keys, addresses and texts decide first. A link is where it leads to: two ways to one address are the same move, and so
are two clicks, neither on a button, that led from one page to one page. What submits a form is the same only from the
same page. A field is the same element on the same page with the same text;
capitals and white space do not count. An element's rank among its namesakes counts. Undecided are similar names on
pages that differ, one name under two roles, long texts in other words, and other words in a search field.
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
"""Less alike is different, whatever a model would say."""
OTHER_ROLE: Final = 0.9
"""One name under two roles, as a link that became a button."""
_SHOWING: Final = ("link", "clickable", "tab", "menuitem")
SAME_POINT_PX: Final = 12.0
LONG_TEXT_WORDS: Final = 5
"""Shorter texts in a field, or as an answer, are compared to the letter."""

SamePage = Callable[[Page, Page], bool]
"""Did both episodes see the same page? False also where that cannot be known."""


def move_likeness(one: Move, other: Move, same_page: SamePage) -> float:
    """*one* is of the failed episode, *other* of the reference."""
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
    """Clicks on what does nothing but show a page, from one page to one page. A link that left its page as it was led
    to that page."""
    if one.value != other.value or not (_shows(one) and _shows(other)):
        return False
    return same_page(one.before, other.before) and same_page(one.after, other.after)


def _shows(move: Move) -> bool:
    roles = _SHOWING if move.changed else ("link",)
    return move.verb == "click" and move.target is not None and move.target.role in roles


@lru_cache(maxsize=50_000)
def text_likeness(one: str, other: str) -> float:
    """Of two folded texts, whatever the order of their words; 0 where their numbers differ."""
    if one == other:
        return 1.0
    if _other_numbers(one, other):
        return 0.0
    return SequenceMatcher(None, _in_order(one), _in_order(other), autojunk=False).ratio()


def _same_set(one: Move, other: Move, same_page: SamePage) -> float:
    if one.search and other.search:
        alike = text_likeness(one.value, other.value)
        return alike if _other_numbers(one.value, other.value) else max(OPEN_FROM, alike)
    if one.before.place != other.before.place:
        return 0.0
    return min(_texts(one.value, other.value), _targets(one, other, same_page))


def _texts(one: str, other: str) -> float:
    """Of what was typed or answered: a name or a number is right or wrong, a longer text may be worded otherwise."""
    if one == other or min(len(one.split()), len(other.split())) < LONG_TEXT_WORDS:
        return float(one == other)
    return _open(text_likeness(one, other))


def _open(alike: float) -> float:
    return alike if alike >= OPEN_FROM else 0.0


def _targets(one: Move, other: Move, same_page: SamePage) -> float:
    mine, its = one.target, other.target
    if mine is None or its is None:
        return float(mine is its)
    if mine.frame != its.frame:
        return 0.0
    if mine.name == its.name:
        if mine.ordinal != its.ordinal:
            return 0.0 if not mine.name or mine.role == its.role else OPEN_FROM
        return 1.0 if mine.role == its.role else OTHER_ROLE
    if mine.role != its.role or not mine.name or not its.name or same_page(one.before, other.before):
        return 0.0  # two names on one page are two elements
    return _open(text_likeness(mine.name, its.name))


def _other_numbers(one: str, other: str) -> bool:
    return sorted(_DIGITS.findall(one)) != sorted(_DIGITS.findall(other))


def _in_order(text: str) -> str:
    words: Sequence[str] = _WORDS.findall(text)
    return " ".join(sorted(words))
