"""Finds a recorded element on a live page: the same element, or none. A pure function of two pages.

An element is identified by, strongest first:

1. role and name, in its frame; its place (below) if several elements have the same name;
2. the same, ignoring the name's case, blanks and counters ("Basket (1)"), then in any frame;
3. its digest (id, name attribute, path of its address, roles around it), if only the name has changed;
4. its name alone, if it is unique and only the kind of control has changed (a link that became a button);
5. for fields, whose names may come from an id: the words around it, and its rank among the fields;
6. for unnamed icons identified by an id: the same, if all names of that kind on the page have changed.

The *place* is the rest of its line (the cells of a table row), then the lines above it, then those below. Only words
that distinguish it from elements of the same name on the recorded page count. So "Edit" in the row of order 17 is found
if that row has moved, and is missing if the row was removed, although other rows have an "Edit". An element is never
chosen because it is the nearest: if none fits, or several fit equally, it is *missing*.
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
"""Minimum share of the distinguishing words that must match."""
FITS_WITH_DIGEST: Final = 0.3
"""The same if the digest also matches."""
ROW_FITS: Final = 1 / 3
"""Minimum share of a table row's words that must match if only one element has the name."""
TIE: Final = 0.15
"""Shares that differ by less are equal."""

CLICKABLE: Final = frozenset({"button", "link", "clickable", "menuitem", "tab"})
FIELDS: Final = frozenset({"textbox", "searchbox", "combobox", "listbox", "spinbutton", "slider", "checkbox", "radio"})
_COUNTER: Final = re.compile(r"\s*[([]\s*\d[\d.,]*\+?\s*[)\]]\s*$|…$")
_IDENTIFIER: Final = re.compile(r"[a-z]+([-_][a-z]+)*")
_NUMBER: Final = re.compile(r"\d+")


class How(StrEnum):
    """How a recorded element was found."""

    SAME = "same"
    """Under the same key."""
    MOVED = "moved"
    """Under another key: its rank, markup, frame or name has changed."""
    MISSING = "missing"
    """No element fits, or several fit equally."""


@dataclass(frozen=True, slots=True)
class Match:
    how: How
    element: Standing | None
    """None if and only if it is missing."""
    reason: str
    """What has changed, or why no element was chosen; empty if nothing has changed."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """The result of a choice among elements of the same name."""

    element: Standing | None
    reason: str = ""


def resolve(target: Standing, then: Page, now: Page) -> Match:
    """Finds the element of *now* that corresponds to *target*, an element of *then*."""
    problem = ""
    for alike in _LADDER:
        namesakes = [element for element in now.elements if alike(target.key, element.key)]
        if not namesakes:
            continue
        before = [element for element in then.elements if alike(target.key, element.key)] or [target]
        choice = _choose(_Namesakes(target, then, _ordered(before), now, _ordered(namesakes)))
        if choice.element is not None:
            return _match(target.key, choice.element)
        problem = problem or choice.reason
    if problem:
        return Match(How.MISSING, None, problem)
    for fallback in (_by_digest, _by_name_alone, _field, _icon):
        match = fallback(target, then, now)
        if match is not None:
            return _match(target.key, match)
    return Match(How.MISSING, None, f"no {key_text(target.key)} is on the page")


def key_text(key: ElementKey) -> str:
    """Describes *key* for people."""
    return f"{key.role} {key.name!r}"


def _match(target: ElementKey, element: Standing) -> Match:
    key = element.key
    if key == target:
        return Match(How.SAME, element, "")
    changes = (
        ("its name is", target.name != key.name, repr(key.name)),
        ("its role is", target.role != key.role, key.role),
        ("its frame is", target.frame != key.frame, repr(key.frame)),
        ("its rank is", target.ordinal != key.ordinal, f"{key.ordinal + 1}, not {target.ordinal + 1}"),
    )
    summary = ", ".join(f"{label} {value}" for label, changed, value in changes if changed)
    return Match(How.MOVED, element, summary or "its markup has changed")


# Comparisons of keys, strictest first.

Alike = Callable[[ElementKey, ElementKey], bool]


def plain(name: str) -> str:
    """*name* without case, blanks and a trailing counter."""
    return " ".join(_COUNTER.sub("", name).casefold().split())


def _exactly(a: ElementKey, b: ElementKey) -> bool:
    return (a.frame, a.role, a.name) == (b.frame, b.role, b.name)


def _plainly(a: ElementKey, b: ElementKey) -> bool:
    return (a.frame, a.role, plain(a.name)) == (b.frame, b.role, plain(b.name))


def _anywhere(a: ElementKey, b: ElementKey) -> bool:
    return (a.role, plain(a.name)) == (b.role, plain(b.name))


_LADDER: Final[tuple[Alike, ...]] = (_exactly, _plainly, _anywhere)


def _ordered(elements: Sequence[Standing]) -> list[Standing]:
    """Sorts elements in document order: shown ones by number, then the others by rank."""
    return sorted(elements, key=lambda element: (element.line is None, element.ref))


# Choice among elements of the same name.


@dataclass(frozen=True, slots=True)
class _Namesakes:
    """An element with the elements of the same name on the recorded page and on the live page."""

    target: Standing
    then: Page
    before: Sequence[Standing]
    now: Page
    candidates: Sequence[Standing]


_Scope = Callable[[Page, Standing, Sequence[Standing]], Words]
_SCOPES: Final[tuple[_Scope, ...]] = (
    lambda page, element, _: page.own(element),
    lambda page, element, alike: page.above(element, alike),
    lambda page, element, alike: page.below(element, alike),
)


def _choose(group: _Namesakes) -> _Choice:
    target = group.target
    by_digest = _only_digest(target, group.before, group.candidates)
    if len(group.before) == len(group.candidates) == 1:
        only = group.candidates[0]
        row = group.then.own(target) if group.then.is_in_row(target) else {}
        if by_digest is None and _share(row, group.now.own(only)) < ROW_FITS:
            return _Choice(None, f"{key_text(target.key)} is in another row now")
        return _Choice(only)
    placed = _by_place(group)
    if by_digest is None or placed.element is not None:
        return placed  # ids often count positions, so the words around an element are more reliable
    return _Choice(by_digest) if _first_share(group, by_digest) >= FITS_WITH_DIGEST else placed


def _only_digest(target: Standing, before: Sequence[Standing], candidates: Sequence[Standing]) -> Standing | None:
    """The only candidate with the digest of *target*, if no other element had that digest."""
    if sum(element.key.digest == target.key.digest for element in before) > 1:
        return None
    alike = [element for element in candidates if element.key.digest == target.key.digest]
    return alike[0] if len(alike) == 1 else None


def _by_place(group: _Namesakes) -> _Choice:
    """Filters both sides by one scope after the other; remaining elements are matched by rank."""
    target, old, new = group.target, list(group.before), list(group.candidates)
    for scope in _SCOPES:
        words = {element: scope(group.then, element, group.before) for element in old}
        distinguishing = _distinguishing(words[target], list(words.values()))
        if not distinguishing:
            continue
        shares = [(_share(distinguishing, scope(group.now, element, group.candidates)), element) for element in new]
        best = max(share for share, _ in shares)
        if best < FITS:
            return _Choice(None, f"no {key_text(target.key)} is at the recorded position")
        new = [element for share, element in shares if share > best - TIE]
        old = [element for element in old if _share(distinguishing, words[element]) > 1 - TIE]
        if len(old) == len(new) == 1:
            return _Choice(new[0])
        if len(old) != len(new):
            break
    by_digest = _only_digest(target, old, new)
    if by_digest is not None:
        return _Choice(by_digest)
    if len(old) == len(new):
        return _Choice(new[old.index(target)])
    return _Choice(None, f"{len(new)} {key_text(target.key)} fit equally, {len(old)} in the recording")


def _first_share(group: _Namesakes, candidate: Standing) -> float:
    """The share of *candidate* in the first scope with distinguishing words; 1 without one."""
    for scope in _SCOPES:
        of_all = [scope(group.then, element, group.before) for element in group.before]
        distinguishing = _distinguishing(scope(group.then, group.target, group.before), of_all)
        if distinguishing:
            return _share(distinguishing, scope(group.now, candidate, group.candidates))
    return 1.0


def _distinguishing(words: Words, of_all: Sequence[Words]) -> Words:
    """The words that distinguish one place, weighted by rarity and distance; all words if there is only one place."""
    if len(of_all) == 1:
        return words
    counts = Counter(word for others in of_all for word in others)
    weighed = {word: near * math.log(len(of_all) / counts[word]) for word, near in words.items()}
    return {word: weight for word, weight in weighed.items() if weight > 0}


def _share(expected: Words, actual: Words) -> float:
    """The share of *expected*, by weight, that is in *actual*; 1 if *expected* is empty."""
    total = sum(expected.values())
    return sum(weight for word, weight in expected.items() if word in actual) / total if total else 1.0


# Elements whose name or role has changed.


def _by_digest(target: Standing, then: Page, now: Page) -> Standing | None:
    """The element with the same markup, if only numbers of its name differ or most of its words are the same."""
    key = target.key
    if sum(element.key.digest == key.digest for element in then.elements) > 1:
        return None
    candidates = [
        element for element in now.elements if element.key.digest == key.digest and element.key.role == key.role
    ]
    if len(candidates) != 1 or candidates[0].key.frame != key.frame:
        return None
    return candidates[0] if _similar(key.name, candidates[0].key.name) else None


def _similar(a: str, b: str) -> bool:
    if _NUMBER.sub("#", plain(a)) == _NUMBER.sub("#", plain(b)):
        return True
    first, second = set(plain(a).split()), set(plain(b).split())
    return bool(first & second) and 2 * len(first & second) >= max(len(first), len(second))


def _by_name_alone(target: Standing, then: Page, now: Page) -> Standing | None:
    """The only clickable element of that name, if it was the only one on the recorded page."""
    name = plain(target.key.name)
    if target.key.role not in CLICKABLE or not name:
        return None

    def called(page: Page) -> list[Standing]:
        return [
            element for element in page.elements if element.key.role in CLICKABLE and plain(element.key.name) == name
        ]

    candidates = called(now)
    return candidates[0] if len(candidates) == len(called(then)) == 1 else None


def _field(target: Standing, then: Page, now: Page) -> Standing | None:
    """A renamed field: the field of the same role in the same place, if their number is the same.

    Only for fields: text in a wrong field does less harm than a click on a wrong button.
    """
    if target.key.role not in FIELDS:
        return None

    def fields(page: Page) -> list[Standing]:
        keys = target.key.frame, target.key.role
        return _ordered([element for element in page.elements if (element.key.frame, element.key.role) == keys])

    before, candidates = fields(then), fields(now)
    known = {element.key.name for element in before if element.key.name}
    if len(before) != len(candidates):
        return None
    choice = _by_place(_Namesakes(target, then, before, now, candidates)).element
    return choice if choice is not None and choice.key.name not in known else None


def _icon(target: Standing, then: Page, now: Page) -> Standing | None:
    """A clickable element named by its id ("send-reply"), if all such ids were renamed and their number is the same.

    If one such name remains, ids were not renamed: then this element was removed, and new ones are other elements.
    """

    def by_id(key: ElementKey) -> bool:
        return key.role == "clickable" and _IDENTIFIER.fullmatch(key.name) is not None

    def compound(key: ElementKey) -> bool:
        return by_id(key) and ("-" in key.name or "_" in key.name)

    known = {element.key.name for element in then.elements}
    before = _ordered([element for element in then.elements if compound(element.key)])
    candidates = _ordered([element for element in now.elements if by_id(element.key) and element.key.name not in known])
    names = {element.key.name for element in now.elements}
    if not compound(target.key) or len(before) < 2 or len(before) != len(candidates):
        return None
    if any(element.key.name in names for element in before):
        return None
    return _by_place(_Namesakes(target, then, before, now, candidates)).element
