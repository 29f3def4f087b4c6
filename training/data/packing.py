"""Rows packed without padding, and without reading twice what several of them begin with.

Attempts at one task begin on one page, an episode that is stuck says the same of the same page again, and every prompt
of a policy begins with what it is told of its work. A pack is the tree of its rows (:mod:`training.data.prefix_tree`):
each token of a shared beginning is computed once, and counts in every row that has it. The loss is that of every row
alone and, but for dropout, so is the gradient: on MiniWoB++ for half of a phase's tokens.

Packs are for models whose attention follows the tree (:mod:`training.engine.tree_attention`): to any other, one row's
action stands behind another row's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from training.data.prefix_tree import Path, shared_length, tree_of
from training.data.rows import Row


@dataclass(frozen=True, slots=True)
class Packed:
    """N rows as T texts, a row's prompt and action each, in a tree of L tokens; A tokens are texts' actions."""

    input_ids: Tensor
    """(1, L)."""
    position_ids: Tensor
    """(1, L), 0-based within each text."""
    predictors: Tensor
    """(A,): position of the token whose logits predict an action token; logits are needed nowhere else. Texts with one
    prompt read their first action tokens at one position."""
    targets: Tensor
    """(A,): that action token."""
    owners: Tensor
    """(A,): which of the T texts the token belongs to."""
    states: Tensor
    """(T,): position of each text's last prompt token, where a critic reads the state."""
    texts: Tensor
    """(N,): which of the T texts is each row's; what was computed of texts is indexed with it."""
    rows: tuple[int, ...]
    """(N,): index of each row in the data."""
    lengths: tuple[int, ...]
    """(B,): tokens of each of the tree's branches, which lie one after the other; they add up to L."""
    paths: tuple[Path, ...]
    """(B,): the branches that a branch's tokens see, in the order of their texts, itself last."""

    def read_at(self, positions: Tensor) -> dict[str, Any]:
        """What a transformers model is called with whose hidden states are read at *positions*, (R,), alone: those
        elsewhere may come out wrong (:mod:`training.engine.packed_model`)."""
        return {**self.inputs, "read_at": positions.unique()}

    @property
    def inputs(self) -> dict[str, Any]:
        """What a transformers model is called with."""
        return {
            "input_ids": self.input_ids,
            "position_ids": self.position_ids,
            "branches": (self.lengths, self.paths),
            "use_cache": False,
        }

    def to(self, device: torch.device | str) -> Packed:
        moved = {name: getattr(self, name).to(device) for name in _TENSORS}
        return Packed(**moved, rows=self.rows, lengths=self.lengths, paths=self.paths)


_TENSORS = ("input_ids", "position_ids", "predictors", "targets", "owners", "states", "texts")


def by_prompt(rows: Sequence[Row], indices: Iterable[int]) -> list[tuple[int, ...]]:
    """*indices* in groups of rows that have the same prompt, in the order of each group's first."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index in indices:
        groups.setdefault(rows[index].prompt, []).append(index)
    return [tuple(group) for group in groups.values()]


def in_order(rows: Sequence[Row], indices: Iterable[int]) -> list[int]:
    """*indices* such that rows which begin with the same tokens are neighbours."""
    return sorted(indices, key=lambda index: (_text(rows[index]), index))


def added_tokens(row: Row, before: Row | None) -> int:
    """What *row* adds to a pack in which it comes, :func:`in_order`, after *before*."""
    return len(row) - (0 if before is None else shared_length(_text(before), _text(row)))


def pack(rows: Sequence[Row], indices: Sequence[int]) -> Packed:
    """The rows at *indices*."""
    parts = sorted({(_text(rows[index]), len(rows[index].prompt)) for index in indices})
    numbers = {part: number for number, part in enumerate(parts)}
    tree = tree_of([text for text, _ in parts])
    lengths = [len(branch.tokens) for branch in tree.branches]
    ends = list(accumulate(lengths))
    spans = [range(end - length, end) for end, length in zip(ends, lengths, strict=True)]
    predictors: list[int] = []
    targets: list[int] = []
    owners: list[int] = []
    states: list[int] = []
    for number, ((text, prompt), path) in enumerate(zip(parts, tree.paths, strict=True)):
        places = [place for branch in path for place in spans[branch]]
        states.append(places[prompt - 1])
        predictors += places[prompt - 1 : -1]
        targets += text[prompt:]
        owners += [number] * (len(text) - prompt)
    return Packed(
        input_ids=torch.tensor([[token for branch in tree.branches for token in branch.tokens]]),
        position_ids=torch.tensor([[branch.depth + n for branch in tree.branches for n in range(len(branch.tokens))]]),
        predictors=torch.tensor(predictors),
        targets=torch.tensor(targets),
        owners=torch.tensor(owners),
        states=torch.tensor(states),
        texts=torch.tensor([numbers[_text(rows[index]), len(rows[index].prompt)] for index in indices]),
        rows=tuple(indices),
        lengths=tuple(lengths),
        paths=tuple((*branch.before, number) for number, branch in enumerate(tree.branches)),
    )


def packs(rows: Sequence[Row], max_tokens: int) -> Iterator[Packed]:
    """Every row once, those with one beginning together, in packs of at most *max_tokens*; a longer row is a pack of
    its own."""
    taken: list[int] = []
    tokens = 0
    for index in in_order(rows, range(len(rows))):
        more = added_tokens(rows[index], rows[taken[-1]] if taken else None)
        if taken and tokens + more > max_tokens:
            yield pack(rows, taken)
            taken, tokens, more = [], 0, len(rows[index])
        taken.append(index)
        tokens += more
    if taken:
        yield pack(rows, taken)


def by_row(values: Tensor, packed: Packed) -> Tensor:
    """Sums *values* (A,) of the action tokens to one number a row, (N,)."""
    sums = torch.zeros(len(packed.states), dtype=values.dtype, device=values.device)
    return sums.index_add(0, packed.owners, values)[packed.texts]


def _text(row: Row) -> tuple[int, ...]:
    return (*row.prompt, *row.action)
