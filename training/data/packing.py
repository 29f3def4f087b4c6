"""Rows packed without padding, isolated by their lengths and positions, those that are alike once.

Attempts at one task begin on one page, and an episode that is stuck says the same of the same page again: on
MiniWoB++ a third of a phase's rows read what another one does. A pack computes it once and counts it as often as it
comes, which is the same loss and, but for dropout, the same gradient.

In a pack `position_ids` start again at 0 with every text. A model that attends in rows
(:mod:`training.stages.row_attention`) keeps texts apart by `lengths`; any other of transformers' by the positions, but
only where it is given no attention mask and no cache (`use_cache=False`): with either, they see each other and the
logits are silently wrong. `tests/training/data/test_packing.py` holds both to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from training.data.rows import Row


@dataclass(frozen=True, slots=True)
class Packed:
    """N rows as T texts, a row's prompt and action each, one after the other: L tokens, A of them actions'."""

    input_ids: Tensor
    """(1, L)."""
    position_ids: Tensor
    """(1, L), 0-based within each text."""
    predictors: Tensor
    """(A,): position of the token whose logits predict an action token; logits are needed nowhere else."""
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
    """(T,): tokens of each text; they add up to L."""

    def read_at(self, positions: Tensor) -> dict[str, Any]:
        """What a transformers model is called with whose hidden states are read at *positions*, (R,), alone: those
        elsewhere may come out wrong (:mod:`training.stages.packed_model`)."""
        return {**self.inputs, "read_at": positions}

    @property
    def inputs(self) -> dict[str, Any]:
        """What a transformers model is called with."""
        return {
            "input_ids": self.input_ids,
            "position_ids": self.position_ids,
            "row_lengths": self.lengths,
            "use_cache": False,
        }

    def to(self, device: torch.device | str) -> Packed:
        moved = {name: getattr(self, name).to(device) for name in _TENSORS}
        return Packed(**moved, rows=self.rows, lengths=self.lengths)


_TENSORS = ("input_ids", "position_ids", "predictors", "targets", "owners", "states", "texts")


def alike(rows: Sequence[Row], indices: Iterable[int]) -> list[tuple[int, ...]]:
    """*indices* in groups of rows that have the same prompt and the same action, in the order of each group's first."""
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for index in indices:
        groups.setdefault((rows[index].prompt, rows[index].action), []).append(index)
    return [tuple(group) for group in groups.values()]


def pack(rows: Sequence[Row], indices: Sequence[int]) -> Packed:
    """The rows at *indices*."""
    ids: list[int] = []
    positions: list[int] = []
    predictors: list[int] = []
    targets: list[int] = []
    owners: list[int] = []
    states: list[int] = []
    groups = alike(rows, indices)
    for text, group in enumerate(groups):
        row, start = rows[group[0]], len(ids)
        ids += (*row.prompt, *row.action)
        positions += range(len(row))
        last = start + len(row.prompt) - 1
        states.append(last)
        predictors += range(last, last + len(row.action))
        targets += row.action
        owners += [text] * len(row.action)
    texts = {index: text for text, group in enumerate(groups) for index in group}
    return Packed(
        input_ids=torch.tensor([ids]),
        position_ids=torch.tensor([positions]),
        predictors=torch.tensor(predictors),
        targets=torch.tensor(targets),
        owners=torch.tensor(owners),
        states=torch.tensor(states),
        texts=torch.tensor([texts[index] for index in indices]),
        rows=tuple(indices),
        lengths=tuple(len(rows[group[0]]) for group in groups),
    )


def packs(rows: Sequence[Row], max_tokens: int) -> Iterator[Packed]:
    """Every row once, those alike together, in packs of at most *max_tokens* (a longer text is a pack of its own)."""
    taken: list[int] = []
    tokens = 0
    for group in alike(rows, range(len(rows))):
        length = len(rows[group[0]])
        if taken and tokens + length > max_tokens:
            yield pack(rows, taken)
            taken, tokens = [], 0
        taken += group
        tokens += length
    if taken:
        yield pack(rows, taken)


def by_row(values: Tensor, packed: Packed) -> Tensor:
    """Sums *values* (A,) of the action tokens to one number a row, (N,)."""
    sums = torch.zeros(len(packed.lengths), dtype=values.dtype, device=values.device)
    return sums.index_add(0, packed.owners, values)[packed.texts]
