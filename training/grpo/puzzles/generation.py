"""Puzzles as examples: so many of one kind, none twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final, Literal

from envs.core.errors import BadInput
from training.grpo.examples import Example
from training.grpo.puzzles.maze import maze
from training.grpo.puzzles.pattern import pattern
from training.grpo.puzzles.sudoku import sudoku
from training.grpo.rewards import Target

Kind = Literal["maze", "sudoku", "pattern"]
KINDS: Final[dict[Kind, tuple[Callable[[Random, int], tuple[str, Target]], int]]] = {
    "maze": (maze, 7),
    "sudoku": (sudoku, 9),
    "pattern": (pattern, 3),
}
"""By name, what makes one, and the side of its grid where nobody says another."""
PATIENCE = 1_000
"""Puzzles in a row that were there already: then there are no more of this size."""


def parse_puzzle_kind(name: str) -> Kind:
    """Raises BadInput."""
    for kind in KINDS:
        if kind == name:
            return kind
    raise BadInput(f"unknown puzzle {name!r}; there are {', '.join(KINDS)}")


def make_puzzles(
    kind: Kind, count: int, *, seed: int, size: int | None = None, apart_from: Sequence[Example] = ()
) -> tuple[Example, ...]:
    """*count* puzzles, the same for the same *seed*, none that asks what one of *apart_from* asks.

    Raises BadInput for a size that the kind does not have, and where there are fewer of it.
    """
    asked = {example.messages for example in apart_from}
    found = dict[str, Example]()
    for example in _endless(kind, seed, size):
        if len(found) == count:
            break
        if example.messages not in asked:
            found.setdefault(example.messages[0][1], example)
    if len(found) < count:
        raise BadInput(
            f"there are hardly more than {len(found)} of {kind!r} of this size: ask for fewer or larger ones"
        )
    return tuple(found.values())


def _endless(kind: Kind, seed: int, size: int | None) -> Iterator[Example]:
    make, usual = KINDS[kind]
    side = usual if size is None else size
    rng, seen, stale = Random(f"{kind} {side} {seed}"), set[str](), 0
    while stale < PATIENCE:
        try:
            prompt, target = make(rng, side)
        except ValueError as error:
            raise BadInput(str(error)) from None
        stale = stale + 1 if prompt in seen else 0
        seen.add(prompt)
        yield Example(name=f"{kind}-{side}/{seed}/{len(seen)}", messages=(("user", prompt),), target=target)
