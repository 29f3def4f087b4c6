"""Texts of tokens as a tree: what several of them begin with is there once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

Text = tuple[int, ...]
Path = tuple[int, ...]
"""Numbers of branches, from a text's first to its last."""


class Branch(NamedTuple):
    """Tokens that the same texts have."""

    tokens: Text
    before: Path
    """What it grows from: the branches with the tokens that stand before its own."""
    depth: int
    """How many those are."""


class Tree(NamedTuple):
    branches: tuple[Branch, ...]
    """Each behind those that it grows from."""
    paths: tuple[Path, ...]
    """Each text's branches, whose tokens are the text."""


def tree_of(texts: Sequence[Text]) -> Tree:
    """The tree of *texts*, which are sorted; equal ones are one."""
    branches: list[Branch] = []
    paths: list[Path] = [()] * len(texts)
    waiting: list[tuple[range, int, Path]] = [(range(len(texts)), 0, ())]
    while waiting:
        members, depth, path = waiting.pop()
        first, last = texts[members[0]], texts[members[-1]]
        shared = depth + shared_length(first[depth:], last[depth:])  # of all between them, too: they are sorted
        if shared > depth:
            branches.append(Branch(first[depth:shared], path, depth))
            path = (*path, len(branches) - 1)
        ending = [place for place in members if len(texts[place]) == shared]
        for place in ending:
            paths[place] = path
        going_on = members[len(ending) :]
        parts = [list(part) for _, part in groupby(going_on, key=lambda place: texts[place][shared])]
        waiting += [(range(part[0], part[-1] + 1), shared, path) for part in reversed(parts)]
    return Tree(tuple(branches), tuple(paths))


def shared_length(one: Text, other: Text) -> int:
    """How many tokens both begin with."""
    for place, (mine, its) in enumerate(zip(one, other, strict=False)):
        if mine != its:
            return place
    return min(len(one), len(other))
