"""Generates distinct puzzles of one kind as examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final, Literal

from envs.core.errors import BadInput
from training.grpo.examples import Example
from training.grpo.puzzles.choices import parse_choice
from training.grpo.puzzles.library_mazes import MazeGenerator, library_maze
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
    return parse_choice(name, KINDS, f"unknown puzzle {name!r}; there are {', '.join(KINDS)}")


def make_puzzles(
    kind: Kind,
    count: int,
    *,
    seed: int,
    size: int | None = None,
    apart_from: Sequence[Example] = (),
    generator: MazeGenerator | None = None,
    percolation: float | None = None,
) -> tuple[Example, ...]:
    """Generates *count* distinct puzzles, deterministic by *seed*, without the prompts of *apart_from*.

    *generator* and *percolation*: for mazes of maze-dataset (:mod:`training.grpo.puzzles.library_mazes`); None: this
    package's own mazes. Raises BadInput for an unsupported size, or if there are fewer puzzles of it.
    """
    make, default_side = KINDS[kind]
    name: str = kind
    if generator is not None:
        if kind != "maze":
            raise BadInput(f"--generator {generator} makes mazes, not {kind!r}")
        make, name = library_maze(generator, percolation), f"maze-{generator}"
    elif percolation is not None:
        raise BadInput("--percolation needs --generator percolation or dfs_percolation")
    excluded = {example.messages for example in apart_from}
    generated = dict[str, Example]()
    for example in _endless(make, name, default_side if size is None else size, seed):
        if len(generated) == count:
            break
        if example.messages not in excluded:
            generated.setdefault(example.messages[0][1], example)
    if len(generated) < count:
        raise BadInput(
            f"only {len(generated)} different puzzles of {kind!r} of this size could be made: "
            "ask for fewer or larger ones"
        )
    return tuple(generated.values())


def make_puzzles_of_sizes(
    kind: Kind,
    count: int,
    *,
    seed: int,
    sizes: Sequence[int] | None = None,
    apart_from: Sequence[Example] = (),
    generator: MazeGenerator | None = None,
    percolation: float | None = None,
) -> tuple[Example, ...]:
    """Generates *count* puzzles, equally many of each of *sizes*, of the first ones one more. None: the default size.
    See :func:`make_puzzles`."""
    distinct = tuple(dict.fromkeys(sizes or (KINDS[kind][1],)))
    share, more = divmod(count, len(distinct))
    return tuple(
        example
        for place, size in enumerate(distinct)
        for example in make_puzzles(
            kind,
            share + (place < more),
            seed=seed,
            size=size,
            apart_from=apart_from,
            generator=generator,
            percolation=percolation,
        )
    )


def _endless(make: Callable[[Random, int], tuple[str, Target]], name: str, side: int, seed: int) -> Iterator[Example]:
    rng, seen, duplicates = Random(f"{name} {side} {seed}"), set[str](), 0
    while duplicates < PATIENCE:
        try:
            prompt, target = make(rng, side)
        except ValueError as error:
            raise BadInput(str(error)) from None
        duplicates = duplicates + 1 if prompt in seen else 0
        seen.add(prompt)
        yield Example(name=f"{name}-{side}/{seed}/{len(seen)}", messages=(("user", prompt),), target=target)
