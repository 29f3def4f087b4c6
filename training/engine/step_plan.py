"""Plans before training which rows each optimizer step has and how they are packed. Equal seeds give equal plans."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from torch.utils.data import Dataset

from training.data.packing import (
    LengthClass,
    PackedSequence,
    added_tokens,
    group_by_class,
    group_by_prompt,
    one_class,
    pack,
    prefix_order,
)
from training.data.rows import Row

OF_ONE_PROMPT = 1 / 8
"""Share of a step's rows that may have the same prompt; the shuffle can still bring more of them together."""


@dataclass(frozen=True, slots=True)
class StepShard:
    """One process's share of an optimizer step."""

    packs: tuple[tuple[int, ...], ...]
    """Row indices of each packed sequence. An empty tuple keeps processes in step with each other, without loss."""
    batch_rows: int
    """Rows of the step over all processes. A packed sequence's loss is weighted by its share of them."""
    batch_tokens: int
    """Completion tokens of the step over all processes."""


class Plan(Dataset[StepShard]):
    """Every row once per epoch, in steps of *batch_rows* rows (the last step of an epoch may have fewer). Rows with the
    same prompt are consecutive, so that they share a packed sequence and its prefix, but take at most `OF_ONE_PROMPT`
    of a step: a step with one prompt only would be noisy.

    Item `step·world_size + rank` is the share of process *rank*. All processes have the same number of packed sequences
    in a step: with sharded weights, processes wait for each other at every pass.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        *,
        batch_rows: int,
        pack_tokens: int,
        epochs: int,
        seed: int,
        steps: int | None = None,
        world_size: int = 1,
        class_of: LengthClass = one_class,
    ) -> None:
        """*steps*: the plan ends after them; None: with the last epoch. *class_of*: the model's classes of lengths."""
        self._rows = rows
        self._shares: list[StepShard] = []
        for epoch in range(epochs):
            groups = _parted(group_by_prompt(rows, range(len(rows))), max(1, int(OF_ONE_PROMPT * batch_rows)))
            random.Random(f"{seed} {epoch}").shuffle(groups)
            order = [index for group in groups for index in group]
            for start in range(0, len(order), batch_rows):
                self._shares += self._of_step(order[start : start + batch_rows], pack_tokens, class_of, world_size)
        if steps is not None:
            del self._shares[steps * world_size :]

    def _of_step(
        self, batch: Sequence[int], pack_tokens: int, class_of: LengthClass, processes: int
    ) -> list[StepShard]:
        groups = group_by_class(self._rows, batch, class_of)
        packs = [members for group in groups for members in _fitted(self._rows, group, pack_tokens)]
        packs += [()] * (-len(packs) % processes)
        tokens = self.completion_tokens(batch)
        return [StepShard(tuple(packs[rank::processes]), len(batch), tokens) for rank in range(processes)]

    def __len__(self) -> int:
        return len(self._shares)

    def __getitem__(self, index: int) -> StepShard:
        return self._shares[index]

    def completion_tokens(self, indices: Sequence[int]) -> int:
        return sum(len(self._rows[index].completion) for index in indices)

    def packed(self, indices: tuple[int, ...]) -> PackedSequence:
        return pack(self._rows, indices)


def _parted(groups: Sequence[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    """Splits *groups* into parts of at most *most* rows."""
    return [group[at : at + most] for group in groups for at in range(0, len(group), most)]


def _fitted(rows: Sequence[Row], batch: Sequence[int], pack_tokens: int) -> list[tuple[int, ...]]:
    """Assigns each row to the packed sequence where it adds the fewest tokens, among those with room for it. A row that
    is longer than *pack_tokens* is packed alone."""
    packs: list[list[int]] = []
    used: list[int] = []
    for index in prefix_order(rows, batch):
        adds = [added_tokens(rows[index], rows[members[-1]]) for members in packs]
        fitting = [place for place, more in enumerate(adds) if used[place] + more <= pack_tokens]
        if fitting:
            place = min(fitting, key=lambda candidate: adds[candidate])
            packs[place].append(index)
            used[place] += adds[place]
        else:
            packs.append([index])
            used.append(len(rows[index]))
    return [tuple(members) for members in packs]
