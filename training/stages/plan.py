"""Which rows an optimizer step sees, and in which packs: decided before training, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from torch.utils.data import Dataset

from training.data.packing import Packed, alike, pack
from training.data.rows import Row

ALIKE = 1 / 8
"""The share of a step's rows that may be one text's, as far as chance does not bring more of them together."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one process does in one optimizer step."""

    packs: tuple[tuple[int, ...], ...]
    """Indices of rows. An empty tuple keeps processes in step with each other and counts for nothing."""
    batch_rows: int
    """Rows of the step over all processes: every pack's loss is weighted by its share of them."""


class Plan(Dataset[Share]):
    """Every row once in each epoch, in steps of *batch_rows* rows (the last one of an epoch may have fewer). Rows that
    are alike come one after the other, so that they share a pack and are computed once, but no more than `ALIKE` of a
    step: a step of one text again and again is a noisy one.

    Item `step·world + rank` is the share of process *rank*. All processes have the same number of packs in a step:
    with sharded weights a process that is done earlier would leave the others waiting.
    """

    def __init__(
        self, rows: Sequence[Row], *, batch_rows: int, pack_tokens: int, epochs: int, seed: int, world: int = 1
    ) -> None:
        self._rows = rows
        self._shares: list[Share] = []
        for epoch in range(epochs):
            groups = _parted(alike(rows, range(len(rows))), max(1, int(ALIKE * batch_rows)))
            random.Random(f"{seed} {epoch}").shuffle(groups)
            order = [index for group in groups for index in group]
            for start in range(0, len(order), batch_rows):
                self._shares += _shares(rows, order[start : start + batch_rows], pack_tokens, world)

    def __len__(self) -> int:
        return len(self._shares)

    def __getitem__(self, index: int) -> Share:
        return self._shares[index]

    def packed(self, indices: tuple[int, ...]) -> Packed:
        return pack(self._rows, indices)


def _parted(groups: Sequence[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    """*groups* in parts of at most *most*."""
    return [group[at : at + most] for group in groups for at in range(0, len(group), most)]


def _shares(rows: Sequence[Row], batch: Sequence[int], pack_tokens: int, world: int) -> list[Share]:
    packs = _first_fit(rows, batch, pack_tokens)
    packs += [()] * (-len(packs) % world)
    return [Share(tuple(packs[rank::world]), len(batch)) for rank in range(world)]


def _first_fit(rows: Sequence[Row], batch: Sequence[int], pack_tokens: int) -> list[tuple[int, ...]]:
    """First-fit decreasing: few packs, all of them nearly full. A text that is longer than a pack is one of its own."""
    bins: list[tuple[int, list[int]]] = []
    for group in sorted(alike(rows, batch), key=lambda one: (-len(rows[one[0]]), one)):
        size = len(rows[group[0]])
        for place, (used, members) in enumerate(bins):
            if used + size <= pack_tokens:
                members.extend(group)
                bins[place] = (used + size, members)
                break
        else:
            bins.append((size, list(group)))
    return [tuple(members) for _, members in bins]
