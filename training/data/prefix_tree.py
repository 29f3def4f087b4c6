"""Builds a prefix tree of token sequences: a prefix that several sequences share is stored once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

Text = tuple[int, ...]
"""One token sequence: a row's prompt and completion."""
Path = tuple[int, ...]
"""Numbers of branches, from a text's first to its last."""


class Branch(NamedTuple):
    """A run of tokens that belongs to the same texts."""

    tokens: Text
    before: Path
    """The branches on the path from the root to this one."""
    depth: int
    """Number of tokens in those branches."""


class Tree(NamedTuple):
    branches: tuple[Branch, ...]
    """Parents come before their children."""
    paths: tuple[Path, ...]
    """Of each text: the branches whose concatenated tokens are the text."""


def tree_of(texts: Sequence[Text]) -> Tree:
    """The prefix tree of *texts*, which must be sorted; equal texts share a path."""
    branches: list[Branch] = []
    paths: list[Path] = [()] * len(texts)
    waiting: list[tuple[range, int, Path]] = [(range(len(texts)), 0, ())]
    while waiting:
        members, depth, path = waiting.pop()
        first, last = texts[members[0]], texts[members[-1]]
        shared = depth + shared_length(first[depth:], last[depth:])  # of all between them, too: texts are sorted
        if shared > depth:
            branches.append(Branch(first[depth:shared], path, depth))
            path = (*path, len(branches) - 1)
        ending = [place for place in members if len(texts[place]) == shared]
        for place in ending:
            paths[place] = path
        longer = members[len(ending) :]
        parts = [list(part) for _, part in groupby(longer, key=lambda place: texts[place][shared])]
        waiting += [(range(part[0], part[-1] + 1), shared, path) for part in reversed(parts)]
    return Tree(tuple(branches), tuple(paths))


def shared_length(first: Text, second: Text) -> int:
    """Length of the longest common prefix, in tokens."""
    for place, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return place
    return min(len(first), len(second))
