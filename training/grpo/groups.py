"""Which rows of a batch a group-relative update may learn from.

Rewards are float32 where TRL compares them: a mean of equal rewards can differ from them by rounding, and what is left
would be an advantage. Adam divides a gradient by its own size, so that such a residue moves the weights by a full step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

ROUNDING: Final = 8 * torch.finfo(torch.float32).eps
"""Rewards of a group are equal where they differ by no more than this share of the largest term they are sums of."""
FLOOR: Final = 1e-12
"""The same where all terms are near zero: above what float64 leaves of terms that cancel."""


@dataclass(frozen=True, slots=True)
class Groups:
    """What the rewards of a batch, of all processes, say of its rows."""

    kept: Tensor
    """(N,) bool: the reward is finite. Other rows take no part in mean, deviation, loss or gradient."""
    equal: Tensor
    """(N,) bool: the kept rewards of the row's group are equal, so that the advantage is exactly 0."""
    equal_groups: int
    """Groups with kept rows, of which all have the same reward."""
    groups: int

    @property
    def nonfinite_rows(self) -> int:
        return int((~self.kept).sum())

    @property
    def loss_scale(self) -> float:
        """Makes a mean over all N rows one over the kept rows; 1 where nothing is kept."""
        return self.kept.numel() / max(1, int(self.kept.sum()))

    @property
    def idle(self) -> bool:
        """Whether no row has an advantage."""
        return bool((self.equal | ~self.kept).all())


def read_groups(rewards: Tensor, weights: Tensor, group: int) -> Groups:
    """*rewards* (N, F) by row and reward function, the N rows group by group; *weights* (F,)."""
    terms = rewards.double() * weights.double()
    kept = torch.isfinite(rewards).all(1)
    inside = kept.view(-1, group)
    total = terms.sum(1).view(-1, group)
    largest = torch.where(inside, terms.abs().sum(1).view(-1, group), 0.0).amax(1)
    top = torch.where(inside, total, -torch.inf).amax(1)
    bottom = torch.where(inside, total, torch.inf).amin(1)
    equal = inside.any(1) & (top - bottom <= (ROUNDING * largest).clamp(min=FLOOR))
    return Groups(kept, equal.repeat_interleave(group), int(equal.sum()), len(equal))


class LeaveIdle(TrainerCallback):
    """Skips the optimizer where no row of a batch has an advantage: with a gradient of zeros Adam's moments and the
    weight decay would still move the weights, and the divergence alone would take them back to the start. *trainer*
    says so by its `idle`."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        if self._trainer.idle:
            self._trainer.model.zero_grad(set_to_none=True)
