"""Finds a recorded element on a live page: the one that it was, or none. Pure: two pages in, one answer out.

What identifies an element, strongest first:

1. role and name, in its frame; the place (below) where several are called alike;
2. the same with the name's case, blanks and counters ("Basket (1)") aside, then in any frame;
3. its digest (id, name attribute, path of its address, roles around it), where only the name has changed;
4. its name alone, where it is unique and only the kind of control has changed (a link that became a button);
5. for fields, whose names may come from an id: the words around it, and its rank among the fields;
6. for nameless icons that went by an id: the same, where every name of that kind on the page is another one now.

The *place* is the rest of its line (the cells of a table row), then the lines above it, then those below. Only words
count that tell it apart from its namesakes of the recorded page, so "Edit" in the row of order 17 is found wherever
that row has gone, and is missing when the row is gone, although other rows have an "Edit" too. An element is never
taken because it is the nearest: nothing fits, or several fit alike, is *missing*.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agent.inspection.replay.page import Page, Standing, Words
from envs.core.observation import ElementKey

FITS: Final = 0.6
"""Least share of the telling words that must be found again."""
FITS_WITH_DIGEST: Final = 0.3
"""The same where the digest is found again too."""
ROW_FITS: Final = 1 / 3
"""Least share of a table row's words that an only namesake must stand among."""
TIE: Final = 0.15
"""Shares that differ by less are alike."""

CLICKABLE: Final = frozenset({"button", "link", "clickable", "menuitem", "tab"})
FIELDS: Final = frozenset({"textbox", "searchbox", "combobox", "listbox", "spinbutton", "slider", "checkbox", "radio"})
_COUNTER: Final = re.compile(r"\s*[([]\s*\d[\d.,]*\+?\s*[)\]]\s*$|…$")
_IDENTIFIER: Final = re.compile(r"[a-z]+([-_][a-z]+)*")
_NUMBER: Final = re.compile(r"\d+")


class How(StrEnum):
    """Where a recorded element was found."""

    SAME = "same"
    """Under its whole key."""
    MOVED = "moved"
    """Certainly the same, under another key: its rank, markup, frame or name has changed."""
    MISSING = "missing"
    """Nothing fits, or several fit alike."""


@dataclass(frozen=True, slots=True)
class Match:
    how: How
    element: Standing | None
    """None exactly where it is missing."""
    reason: str
    """What has changed, or why nothing was taken; empty where nothing has."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What comes of a choice among namesakes."""

    element: Standing | None
    reason: str = ""


def resolve(wanted: Standing, then: Page, now: Page) -> Match:
    """The element of *now* that *wanted*, an element of *then*, is."""
    problem = ""
    for alike in _LADDER:
        namesakes = [one for one in now.elements if alike(wanted.key, one.key)]
        if not namesakes:
            continue
        before = [one for one in then.elements if alike(wanted.key, one.key)] or [wanted]
        choice = _choose(_Namesakes(wanted, then, _ordered(before), now, _ordered(namesakes)))
        if choice.element is not None:
            return _match(wanted.key, choice.element)
        problem = problem or choice.reason
    if problem:
        return Match(How.MISSING, None, problem)
    for otherwise in (_by_digest, _by_name_alone, _field, _icon):
        found = otherwise(wanted, then, now)
        if found is not None:
            return _match(wanted.key, found)
    return Match(How.MISSING, None, f"no {key_text(wanted.key)} is there")


def key_text(key: ElementKey) -> str:
    """For people."""
    return f"{key.role} {key.name!r}"


def _match(wanted: ElementKey, found: Standing) -> Match:
    key = found.key
    if key == wanted:
        return Match(How.SAME, found, "")
    changes = (
        ("it is called", wanted.name != key.name, repr(key.name)),
        ("its role is", wanted.role != key.role, key.role),
        ("its frame is", wanted.frame != key.frame, repr(key.frame)),
        ("its rank is", wanted.ordinal != key.ordinal, f"{key.ordinal + 1}, not {wanted.ordinal + 1}"),
    )
    told_changes = ", ".join(f"{what} {now}" for what, changed, now in changes if changed)
    return Match(How.MOVED, found, told_changes or "its markup has changed")


# How two keys can be called alike, strictest first.

Alike = Callable[[ElementKey, ElementKey], bool]


def plain(name: str) -> str:
    """A name without case, blanks and a counter at its end."""
    return " ".join(_COUNTER.sub("", name).casefold().split())


def _exactly(a: ElementKey, b: ElementKey) -> bool:
    return (a.frame, a.role, a.name) == (b.frame, b.role, b.name)


def _plainly(a: ElementKey, b: ElementKey) -> bool:
    return (a.frame, a.role, plain(a.name)) == (b.frame, b.role, plain(b.name))


def _anywhere(a: ElementKey, b: ElementKey) -> bool:
    return (a.role, plain(a.name)) == (b.role, plain(b.name))


_LADDER: Final[tuple[Alike, ...]] = (_exactly, _plainly, _anywhere)


def _ordered(elements: Sequence[Standing]) -> list[Standing]:
    """In the order of the document: shown ones by their number, then the rest by rank."""
    return sorted(elements, key=lambda one: (one.line is None, one.ref))


# Choosing among namesakes.


@dataclass(frozen=True, slots=True)
class _Namesakes:
    """An element with all that were called like it then, and all that are now."""

    wanted: Standing
    then: Page
    before: Sequence[Standing]
    now: Page
    found: Sequence[Standing]


_Scope = Callable[[Page, Standing, Sequence[Standing]], Words]
_SCOPES: Final[tuple[_Scope, ...]] = (
    lambda page, one, _: page.own(one),
    lambda page, one, alike: page.above(one, alike),
    lambda page, one, alike: page.below(one, alike),
)


def _choose(group: _Namesakes) -> _Choice:
    wanted = group.wanted
    by_digest = _only_digest(wanted, group.before, group.found)
    if len(group.before) == len(group.found) == 1:
        only = group.found[0]
        row = group.then.own(wanted) if group.then.is_in_row(wanted) else {}
        if by_digest is None and _share(row, group.now.own(only)) < ROW_FITS:
            return _Choice(None, f"{key_text(wanted.key)} stands in another row now")
        return _Choice(only)
    placed = _by_place(group)
    if by_digest is None or placed.element is not None:
        return placed  # ids often count positions: the words around an element are the better witness
    return _Choice(by_digest) if _first_share(group, by_digest) >= FITS_WITH_DIGEST else placed


def _only_digest(wanted: Standing, before: Sequence[Standing], found: Sequence[Standing]) -> Standing | None:
    """The only one found with the digest that only *wanted* had."""
    if sum(one.key.digest == wanted.key.digest for one in before) > 1:
        return None
    alike = [one for one in found if one.key.digest == wanted.key.digest]
    return alike[0] if len(alike) == 1 else None


def _by_place(group: _Namesakes) -> _Choice:
    """Narrows both sides by one scope after the other; what is left alike is told apart by its rank."""
    wanted, old, new = group.wanted, list(group.before), list(group.found)
    for scope in _SCOPES:
        words = {one: scope(group.then, one, group.before) for one in old}
        telling = _telling(words[wanted], list(words.values()))
        if not telling:
            continue
        shares = [(_share(telling, scope(group.now, one, group.found)), one) for one in new]
        best = max(share for share, _ in shares)
        if best < FITS:
            return _Choice(None, f"no {key_text(wanted.key)} stands where it stood")
        new = [one for share, one in shares if share > best - TIE]
        old = [one for one in old if _share(telling, words[one]) > 1 - TIE]
        if len(old) == len(new) == 1:
            return _Choice(new[0])
        if len(old) != len(new):
            break
    by_digest = _only_digest(wanted, old, new)
    if by_digest is not None:
        return _Choice(by_digest)
    if len(old) == len(new):
        return _Choice(new[old.index(wanted)])
    return _Choice(None, f"{len(new)} {key_text(wanted.key)} fit alike, where {len(old)} did")


def _first_share(group: _Namesakes, candidate: Standing) -> float:
    """How well *candidate* stands in the first scope that tells anything; 1 where none does."""
    for scope in _SCOPES:
        of_all = [scope(group.then, one, group.before) for one in group.before]
        telling = _telling(scope(group.then, group.wanted, group.before), of_all)
        if telling:
            return _share(telling, scope(group.now, candidate, group.found))
    return 1.0


def _telling(words: Words, of_all: Sequence[Words]) -> Words:
    """The words that tell one place from the others, by how rare and how near they are; all where it is the only."""
    if len(of_all) == 1:
        return words
    counts = Counter(word for one in of_all for word in one)
    weighed = {word: near * math.log(len(of_all) / counts[word]) for word, near in words.items()}
    return {word: weight for word, weight in weighed.items() if weight > 0}


def _share(wanted: Words, found: Words) -> float:
    """The part of *wanted*, by weight, that is in *found*; 1 where nothing is wanted."""
    total = sum(wanted.values())
    return sum(weight for word, weight in wanted.items() if word in found) / total if total else 1.0


# Where the name or the role is another one.


def _by_digest(wanted: Standing, then: Page, now: Page) -> Standing | None:
    """The same markup under a name in which only numbers are others, or that shares most of its words."""
    key = wanted.key
    if sum(one.key.digest == key.digest for one in then.elements) > 1:
        return None
    found = [one for one in now.elements if one.key.digest == key.digest and one.key.role == key.role]
    if len(found) != 1 or found[0].key.frame != key.frame:
        return None
    return found[0] if _similar(key.name, found[0].key.name) else None


def _similar(a: str, b: str) -> bool:
    if _NUMBER.sub("#", plain(a)) == _NUMBER.sub("#", plain(b)):
        return True
    one, other = set(plain(a).split()), set(plain(b).split())
    return bool(one & other) and 2 * len(one & other) >= max(len(one), len(other))


def _by_name_alone(wanted: Standing, then: Page, now: Page) -> Standing | None:
    """The one thing to click that is called so, where it was the one before."""
    name = plain(wanted.key.name)
    if wanted.key.role not in CLICKABLE or not name:
        return None

    def called(page: Page) -> list[Standing]:
        return [one for one in page.elements if one.key.role in CLICKABLE and plain(one.key.name) == name]

    found = called(now)
    return found[0] if len(found) == len(called(then)) == 1 else None


def _field(wanted: Standing, then: Page, now: Page) -> Standing | None:
    """A field that is called otherwise: the one of its kind, of as many, that stands where it stood.

    Only fields: a field in the wrong place takes text, a button does something.
    """
    if wanted.key.role not in FIELDS:
        return None

    def fields(page: Page) -> list[Standing]:
        keys = wanted.key.frame, wanted.key.role
        return _ordered([one for one in page.elements if (one.key.frame, one.key.role) == keys])

    before, found = fields(then), fields(now)
    known = {one.key.name for one in before if one.key.name}
    if len(before) != len(found):
        return None
    choice = _by_place(_Namesakes(wanted, then, before, now, found)).element
    return choice if choice is not None and choice.key.name not in known else None


def _icon(wanted: Standing, then: Page, now: Page) -> Standing | None:
    """A thing to click that went by its id ("send-reply"), where all such ids were renamed, as many as before.

    Where one such name is left, ids were not renamed: then this one is gone, and what is new is something else.
    """

    def by_id(key: ElementKey) -> bool:
        return key.role == "clickable" and _IDENTIFIER.fullmatch(key.name) is not None

    def compound(key: ElementKey) -> bool:
        return by_id(key) and ("-" in key.name or "_" in key.name)

    known = {one.key.name for one in then.elements}
    before = _ordered([one for one in then.elements if compound(one.key)])
    found = _ordered([one for one in now.elements if by_id(one.key) and one.key.name not in known])
    names = {one.key.name for one in now.elements}
    if not compound(wanted.key) or len(before) < 2 or len(before) != len(found):
        return None
    if any(one.key.name in names for one in before):
        return None
    return _by_place(_Namesakes(wanted, then, before, now, found)).element
