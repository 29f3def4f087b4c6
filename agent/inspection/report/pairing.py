"""Puts the steps of two episodes of one task side by side: for reading, not for judging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple
from urllib.parse import urlsplit

from envs.core.trace_store import Step
from judges.analysis.records import SameSteps

_MOST_STEPS = 400
"""Beyond it the longest common subsequence costs seconds, and nobody reads both."""


class Pair(NamedTuple):
    """0-based places; None where one side has nothing to put beside the other."""

    own: int | None
    other: int | None
    same: bool


def paired(own: Sequence[Step], other: Sequence[Step], known: Sequence[SameSteps] = ()) -> Iterator[Pair]:
    """The analyzer's pairs (*known*) stand in one row. Between them, and where it paired nothing, same actions on the
    same elements do, and what differs stands side by side."""
    if max(len(own), len(other)) > _MOST_STEPS:
        yield from _side_by_side(range(len(own)), range(len(other)))
        return
    a = b = 0
    for one, two in _in_order(own, other, known):
        yield from _between(own, other, range(a, one), range(b, two))
        yield Pair(one, two, same=True)
        a, b = one + 1, two + 1
    yield from _between(own, other, range(a, len(own)), range(b, len(other)))


def _in_order(own: Sequence[Step], other: Sequence[Step], known: Sequence[SameSteps]) -> Iterator[tuple[int, int]]:
    """Places of the pairs that can stand one below the other."""
    mine = {step.intent.step: place for place, step in enumerate(own)}
    theirs = {step.intent.step: place for place, step in enumerate(other)}
    a = b = -1
    for one, two in known:
        here, there = mine.get(one, -1), theirs.get(two, -1)
        if here > a and there > b:
            yield here, there
            a, b = here, there


def _between(own: Sequence[Step], other: Sequence[Step], here: range, there: range) -> Iterator[Pair]:
    mine, theirs = [_key(own[i]) for i in here], [_key(other[i]) for i in there]
    for kind, a1, a2, b1, b2 in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (Pair(a, b, same=True) for a, b in zip(here[a1:a2], there[b1:b2], strict=True))
        else:
            yield from _side_by_side(here[a1:a2], there[b1:b2])


def _side_by_side(own: range, other: range) -> Iterator[Pair]:
    for place in range(max(len(own), len(other))):
        yield Pair(own[place] if place < len(own) else None, other[place] if place < len(other) else None, same=False)


def _key(step: Step) -> tuple[str, object, str]:
    """The action without the numbers of one observation, the element by its durable key, the path of the page."""
    intent = step.intent
    action = intent.action.model_dump_json(exclude={"ref", "to_ref"})
    target = intent.target
    element = (target.frame, target.role, target.name, target.ordinal) if target else None
    try:
        path = urlsplit(intent.seen.url).path
    except ValueError:
        path = intent.seen.url
    return action, element, path
