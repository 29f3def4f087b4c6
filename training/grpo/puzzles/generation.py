"""Generates distinct puzzles of one kind as examples."""

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
"""Generator and default grid side of each kind."""
PATIENCE = 1_000
"""Consecutive duplicates after which no further puzzles of this size are expected."""


def parse_puzzle_kind(name: str) -> Kind:
    """Returns *name* as a kind of puzzle. Raises BadInput."""
    for kind in KINDS:
        if kind == name:
            return kind
    raise BadInput(f"unknown puzzle {name!r}; there are {', '.join(KINDS)}")


def make_puzzles(
    kind: Kind, count: int, *, seed: int, size: int | None = None, apart_from: Sequence[Example] = ()
) -> tuple[Example, ...]:
    """Generates *count* distinct puzzles, deterministic by *seed*, without the prompts of *apart_from*.

    Raises BadInput for an unsupported size, or if there are fewer puzzles of it.
    """
    excluded = {example.messages for example in apart_from}
    generated = dict[str, Example]()
    for example in _endless(kind, seed, size):
        if len(generated) == count:
            break
        if example.messages not in excluded:
            generated.setdefault(example.messages[0][1], example)
    if len(generated) < count:
        raise BadInput(
            f"there are hardly more than {len(generated)} of {kind!r} of this size: ask for fewer or larger ones"
        )
    return tuple(generated.values())


def _endless(kind: Kind, seed: int, size: int | None) -> Iterator[Example]:
    make, default_side = KINDS[kind]
    side = default_side if size is None else size
    rng, seen, duplicates = Random(f"{kind} {side} {seed}"), set[str](), 0
    while duplicates < PATIENCE:
        try:
            prompt, target = make(rng, side)
        except ValueError as error:
            raise BadInput(str(error)) from None
        duplicates = duplicates + 1 if prompt in seen else 0
        seen.add(prompt)
        yield Example(name=f"{kind}-{side}/{seed}/{len(seen)}", messages=(("user", prompt),), target=target)
