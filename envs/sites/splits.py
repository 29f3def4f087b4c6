"""Which templates may be trained on. The split is by template: no wording, page or way of a held-out one is seen."""

from __future__ import annotations

from typing import Literal, get_args

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

EVALUATION_SEEDS = 8
"""Instances 0 to 7 of every template are for evaluation; the pool of the curriculum begins after them."""
POOL = 1_500

VALIDATION: frozenset[str] = frozenset()
TEST: frozenset[str] = frozenset()


def split_of(name: str) -> Split:
    """Everything that is not held out is for training."""
    return "validation" if name in VALIDATION else "test" if name in TEST else "train"
