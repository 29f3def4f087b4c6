"""Which rows an optimizer step sees, and in which packs: decided before training, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from torch.utils.data import Dataset

from training.data.packing import PackedSequence, added_tokens, group_by_prompt, pack, prefix_order
from training.data.rows import Row

OF_ONE_PROMPT = 1 / 8
"""The share of a step's rows that may be one prompt's, as far as chance does not bring more of them together."""


@dataclass(frozen=True, slots=True)
class StepShard:
    """What one process does in one optimizer step."""

    packs: tuple[tuple[int, ...], ...]
    """Indices of rows. An empty tuple keeps processes in step with each other and counts for nothing."""
    batch_rows: int
    """Rows of the step over all processes: every pack's loss is weighted by its share of them."""


class Plan(Dataset[StepShard]):
    """Every row once in each epoch, in steps of *batch_rows* rows (the last one of an epoch may have fewer). Rows of
    one prompt come one after the other, so that they share a pack and it is read once, but no more than `OF_ONE_PROMPT`
    of a step: a step of one text again and again is a noisy one.

    Item `step·world + rank` is the share of process *rank*. All processes have the same number of packs in a step:
    with sharded weights a process that is done earlier would leave the others waiting.
    """

    def __init__(
        self, rows: Sequence[Row], *, batch_rows: int, pack_tokens: int, epochs: int, seed: int, world: int = 1
    ) -> None:
        self._rows = rows
        self._shares: list[StepShard] = []
        for epoch in range(epochs):
            groups = _parted(group_by_prompt(rows, range(len(rows))), max(1, int(OF_ONE_PROMPT * batch_rows)))
            random.Random(f"{seed} {epoch}").shuffle(groups)
            order = [index for group in groups for index in group]
            for start in range(0, len(order), batch_rows):
                self._shares += _shares(rows, order[start : start + batch_rows], pack_tokens, world)

    def __len__(self) -> int:
        return len(self._shares)

    def __getitem__(self, index: int) -> StepShard:
        return self._shares[index]

    def packed(self, indices: tuple[int, ...]) -> PackedSequence:
        return pack(self._rows, indices)


def _parted(groups: Sequence[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    """*groups* in parts of at most *most*."""
    return [group[at : at + most] for group in groups for at in range(0, len(group), most)]


def _shares(rows: Sequence[Row], batch: Sequence[int], pack_tokens: int, world: int) -> list[StepShard]:
    packs = _fitted(rows, batch, pack_tokens)
    packs += [()] * (-len(packs) % world)
    return [StepShard(tuple(packs[rank::world]), len(batch)) for rank in range(world)]


def _fitted(rows: Sequence[Row], batch: Sequence[int], pack_tokens: int) -> list[tuple[int, ...]]:
    """Each row where it adds the fewest tokens, among the packs that have room for them. A row that is longer than a
    pack is one of its own."""
    found: list[list[int]] = []
    used: list[int] = []
    for index in prefix_order(rows, batch):
        adds = [added_tokens(rows[index], rows[members[-1]]) for members in found]
        fitting = [place for place, more in enumerate(adds) if used[place] + more <= pack_tokens]
        if fitting:
            place = min(fitting, key=lambda one: adds[one])
            found[place].append(index)
            used[place] += adds[place]
        else:
            found.append([index])
            used.append(len(rows[index]))
    return [tuple(members) for members in found]
