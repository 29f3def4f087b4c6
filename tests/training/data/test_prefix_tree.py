"""Prefix trees, against the set of all prefixes."""

from __future__ import annotations

import random

import pytest

from training.data.prefix_tree import shared_length, tree_of


def texts_of(seed: int) -> list[tuple[int, ...]]:
    """Up to 30 texts of up to 12 tokens out of two or three, so that most share a prefix and some are prefixes."""
    draw = random.Random(seed)
    few = draw.choice((2, 3))
    return sorted(
        tuple(draw.randrange(few) for _ in range(draw.randrange(1, 13))) for _ in range(draw.randrange(1, 31))
    )


@pytest.mark.parametrize("seed", range(40))
def test_every_prefix_is_stored_once_and_paths_restore_the_texts(seed: int) -> None:
    texts = texts_of(seed)
    tree = tree_of(texts)
    beginnings = {text[: length + 1] for text in texts for length in range(len(text))}
    assert sum(len(branch.tokens) for branch in tree.branches) == len(beginnings)
    for text, path in zip(texts, tree.paths, strict=True):
        assert sum((tree.branches[number].tokens for number in path), ()) == text


@pytest.mark.parametrize("seed", range(10))
def test_parents_come_before_their_children(seed: int) -> None:
    tree = tree_of(texts_of(seed))
    for number, branch in enumerate(tree.branches):
        assert branch.tokens and all(other < number for other in branch.before)
        assert branch.depth == sum(len(tree.branches[other].tokens) for other in branch.before)


def test_a_thousand_texts_that_are_prefixes_of_each_other() -> None:
    """Deeper than Python's recursion limit."""
    texts = [(7,) * length for length in range(1, 1_501)]
    tree = tree_of(texts)
    assert [len(branch.tokens) for branch in tree.branches] == [1] * 1_500
    assert tree.paths[-1] == tuple(range(1_500))


def test_equal_texts_and_a_text_that_is_a_prefix() -> None:
    tree = tree_of([(1, 2), (1, 2), (1, 2, 3), (4,)])
    assert [(branch.tokens, branch.before, branch.depth) for branch in tree.branches] == [
        ((1, 2), (), 0),
        ((3,), (0,), 2),
        ((4,), (), 0),
    ]
    assert tree.paths == ((0,), (0,), (0, 1), (2,))


def test_shared_length() -> None:
    assert [shared_length((1, 2, 3), other) for other in ((1, 2, 3), (1, 2), (1, 5, 3), (), (9,))] == [3, 2, 1, 0, 0]
