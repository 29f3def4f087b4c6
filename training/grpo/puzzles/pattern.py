"""Generates pattern puzzles: two pairs of grids show a rule, which is applied to a third (after ARC-AGI, Chollet
2019)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from training.grpo.rewards.targets import GridTarget

ASK = "Each pair of grids is one rule at work. Apply it to the last grid. Answer with its rows."
COLOURS = 4
"""Number of digits in a grid: 0 (background) to 3."""
PAIRS = 2
"""Number of example pairs in a prompt."""

Rows = tuple[str, ...]
Rule = Callable[[Rows], Rows]


def pattern(rng: Random, size: int) -> tuple[str, GridTarget]:
    """Returns (prompt, target) of grids of *size* x *size*, at least 2."""
    if size < 2:
        raise ValueError(f"a pattern's side is at least 2, not {size}")
    rule = _rule(rng)
    shown = [_grid(rng, size, rule) for _ in range(PAIRS)]
    last = _grid(rng, size, rule)
    return pattern_prompt([(grid, rule(grid)) for grid in shown], last), GridTarget(rows=rule(last))


def pattern_prompt(pairs: Sequence[tuple[Rows, Rows]], last: Rows) -> str:
    """Returns the question with *pairs* of grids, before and after the rule, and the *last* grid before it."""
    parts = ["\n".join((*before, ">", *after)) for before, after in pairs]
    return "\n\n".join((ASK, *parts, "\n".join((*last, ">"))))


def _grid(rng: Random, size: int, rule: Rule) -> Rows:
    """Generates a grid that the rule changes; an unchanged grid would not show the rule."""
    while True:
        cells = ["".join(str(rng.choice((0, 0, *range(1, COLOURS)))) for _ in range(size)) for _ in range(size)]
        grid = tuple(cells)
        if rule(grid) != grid:
            return grid


def _rule(rng: Random) -> Rule:
    first, second = rng.sample(range(1, COLOURS), 2)
    rules: list[Rule] = [
        lambda rows: tuple(row[::-1] for row in rows),
        lambda rows: rows[::-1],
        lambda rows: tuple("".join(column) for column in zip(*rows, strict=True)),
        lambda rows: tuple("".join(column)[::-1] for column in zip(*rows, strict=True)),
        lambda rows: tuple(row[-1] + row[:-1] for row in rows),
        lambda rows: (rows[-1], *rows[:-1]),
        lambda rows: tuple(
            row.translate(str.maketrans({str(first): str(second), str(second): str(first)})) for row in rows
        ),
        lambda rows: tuple(row.replace(str(first), str(second)) for row in rows),
        _fallen,
    ]
    return rng.choice(rules)


def _fallen(rows: Rows) -> Rows:
    """Moves every coloured cell to the bottom of its column."""
    columns = ["".join(column) for column in zip(*rows, strict=True)]
    low = ["0" * column.count("0") + column.replace("0", "") for column in columns]
    return tuple("".join(row) for row in zip(*low, strict=True))
