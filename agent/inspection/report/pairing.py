"""Aligns the steps of two episodes of a task, for display only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple
from urllib.parse import urlsplit

from envs.core.trace_store import Step
from judges.analysis.records import SameSteps

_MOST_STEPS = 400
"""Maximum steps for an alignment by longest common subsequence, which takes seconds for more."""


class Pair(NamedTuple):
    """Indices of two aligned steps; None if one side has no step in this row."""

    own: int | None
    other: int | None
    same: bool


def align_steps(own: Sequence[Step], other: Sequence[Step], known: Sequence[SameSteps] = ()) -> Iterator[Pair]:
    """Aligns two lists of steps.

    The analyzer's pairs (*known*) are kept. Between them, equal actions on the same elements are paired; other steps
    are put side by side in order."""
    if max(len(own), len(other)) > _MOST_STEPS:
        yield from _side_by_side(range(len(own)), range(len(other)))
        return
    a = b = 0
    for here, there in _in_order(own, other, known):
        yield from _between(own, other, range(a, here), range(b, there))
        yield Pair(here, there, same=True)
        a, b = here + 1, there + 1
    yield from _between(own, other, range(a, len(own)), range(b, len(other)))


def _in_order(own: Sequence[Step], other: Sequence[Step], known: Sequence[SameSteps]) -> Iterator[tuple[int, int]]:
    """Indices of the known pairs that are in order on both sides."""
    own_indices = {step.intent.step: place for place, step in enumerate(own)}
    other_indices = {step.intent.step: place for place, step in enumerate(other)}
    a = b = -1
    for own_step, other_step in known:
        here, there = own_indices.get(own_step, -1), other_indices.get(other_step, -1)
        if here > a and there > b:
            yield here, there
            a, b = here, there


def _between(own: Sequence[Step], other: Sequence[Step], here: range, there: range) -> Iterator[Pair]:
    own_keys, other_keys = [_key(own[i]) for i in here], [_key(other[i]) for i in there]
    for kind, a1, a2, b1, b2 in SequenceMatcher(None, own_keys, other_keys, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (Pair(a, b, same=True) for a, b in zip(here[a1:a2], there[b1:b2], strict=True))
        else:
            yield from _side_by_side(here[a1:a2], there[b1:b2])


def _side_by_side(own: range, other: range) -> Iterator[Pair]:
    for place in range(max(len(own), len(other))):
        yield Pair(own[place] if place < len(own) else None, other[place] if place < len(other) else None, same=False)


def _key(step: Step) -> tuple[str, object, str]:
    """Identifies a step: the action without element numbers, the durable key of its element, the path of the page."""
    intent = step.intent
    action = intent.action.model_dump_json(exclude={"ref", "to_ref"})
    target = intent.target
    element = (target.frame, target.role, target.name, target.ordinal) if target else None
    try:
        path = urlsplit(intent.seen.url).path
    except ValueError:
        path = intent.seen.url
    return action, element, path
