"""Chooses the instructions of a picture: each names one control only, and the three kinds are in balance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from training.grounding.controls import Asks, Control, Instruction, instructions, is_unambiguous
from training.grounding.shots import Seen, Shot
from training.grpo.rewards.geometry import distance

DISTRACTORS: Final = 8
"""Most distractors of an example."""


class Chosen(NamedTuple):
    """One instruction with its control."""

    instruction: Instruction
    seen: Seen
    distractors: tuple[Seen, ...]
    """Other controls in the picture that resemble it, the most similar first."""


class Choice(NamedTuple):
    """The instructions of one picture."""

    chosen: tuple[Chosen, ...]
    ambiguous: Counter[Asks]
    """Instructions that name no control or more than one, by kind."""


def choose(shot: Shot, most: int, rng: Random) -> Choice:
    """Chooses at most *most* instructions, each for another control, by turns of each kind."""
    usable: dict[Asks, list[tuple[Instruction, Seen]]] = {asks: [] for asks in Asks}
    ambiguous: Counter[Asks] = Counter()
    for seen in rng.sample(shot.seen, len(shot.seen)):
        for instruction in instructions(seen.control):
            if is_unambiguous(instruction, seen.control, _as_shown(shot.controls, seen)):
                usable[instruction.asks].append((instruction, seen))
            else:
                ambiguous[instruction.asks] += 1
    usable[Asks.RELATION].sort(key=lambda each: _is_named_once(each[1].control, shot.controls))
    chosen: list[Chosen] = []
    taken = set[str]()
    while len(chosen) < most and any(usable.values()):
        for asks in Asks:
            while usable[asks] and usable[asks][0][1].control.id in taken:
                usable[asks].pop(0)
            if usable[asks] and len(chosen) < most:
                instruction, seen = usable[asks].pop(0)
                taken.add(seen.control.id)
                chosen.append(Chosen(instruction, seen, _distractors(seen, shot.seen)))
    return Choice(tuple(chosen), ambiguous)


def _as_shown(controls: Sequence[Control], seen: Seen) -> tuple[Control, ...]:
    """*controls* with the target as it was seen."""
    return tuple(seen.control if control.id == seen.control.id else control for control in controls)


def _is_named_once(control: Control, controls: Sequence[Control]) -> bool:
    return sum(other.name.casefold() == control.name.casefold() for other in controls) == 1


def _distractors(target: Seen, seen: Sequence[Seen]) -> tuple[Seen, ...]:
    """Controls that resemble *target*: of its name first, then of its kind; the nearest first."""
    others = [each for each in seen if each.control.id != target.control.id]

    def order(other: Seen) -> tuple[bool, float]:
        return other.control.name != target.control.name, distance(other.box.centre, target.box.centre)

    alike = [each for each in others if _resembles(each.control, target.control)]
    return tuple(sorted(alike, key=order)[:DISTRACTORS])


def _resembles(one: Control, other: Control) -> bool:
    return one.name.casefold() == other.name.casefold() or one.kind == other.kind
