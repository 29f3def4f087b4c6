"""Rows packed into sequences without padding, isolated by their lengths and positions.

A packed batch is one sequence whose `position_ids` start again at 0 with every row. A model that attends in rows
(:mod:`training.stages.row_attention`) keeps them apart by `lengths`; any other of transformers' by the positions, but
only where it is given no attention mask and no cache (`use_cache=False`): with either, rows see each other and the
logits are silently wrong. `tests/training/data/test_packing.py` holds both to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from training.data.rows import Row


@dataclass(frozen=True, slots=True)
class Packed:
    """N rows in one sequence of L tokens, A of them the actions'."""

    input_ids: Tensor
    """(1, L)."""
    position_ids: Tensor
    """(1, L), 0-based within each row."""
    predictors: Tensor
    """(A,): position of the token whose logits predict an action token; logits are needed nowhere else."""
    targets: Tensor
    """(A,): that action token."""
    owners: Tensor
    """(A,): which of the N rows the token belongs to."""
    states: Tensor
    """(N,): position of each row's last prompt token, where a critic reads the state."""
    rows: tuple[int, ...]
    """Index of each row in the data."""
    lengths: tuple[int, ...]
    """Tokens of each row; they add up to L."""

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


_TENSORS = ("input_ids", "position_ids", "predictors", "targets", "owners", "states")


def pack(rows: Sequence[Row], indices: Sequence[int]) -> Packed:
    """The rows at *indices*, one after the other."""
    ids: list[int] = []
    positions: list[int] = []
    predictors: list[int] = []
    targets: list[int] = []
    owners: list[int] = []
    states: list[int] = []
    for owner, index in enumerate(indices):
        row, start = rows[index], len(ids)
        ids += (*row.prompt, *row.action)
        positions += range(len(row))
        last = start + len(row.prompt) - 1
        states.append(last)
        predictors += range(last, last + len(row.action))
        targets += row.action
        owners += [owner] * len(row.action)
    return Packed(
        input_ids=torch.tensor([ids]),
        position_ids=torch.tensor([positions]),
        predictors=torch.tensor(predictors),
        targets=torch.tensor(targets),
        owners=torch.tensor(owners),
        states=torch.tensor(states),
        rows=tuple(indices),
        lengths=tuple(len(rows[index]) for index in indices),
    )


def packs(rows: Sequence[Row], max_tokens: int) -> Iterator[Packed]:
    """Every row once, in order, in packs of at most *max_tokens* (a longer row is a pack of its own)."""
    taken: list[int] = []
    tokens = 0
    for index, row in enumerate(rows):
        if taken and tokens + len(row) > max_tokens:
            yield pack(rows, taken)
            taken, tokens = [], 0
        taken.append(index)
        tokens += len(row)
    if taken:
        yield pack(rows, taken)


def by_row(values: Tensor, packed: Packed) -> Tensor:
    """Sums *values* (A,) of the action tokens to one number a row, (N,)."""
    return torch.zeros(len(packed.rows), dtype=values.dtype, device=values.device).index_add(0, packed.owners, values)
