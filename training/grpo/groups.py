"""Which rows of a batch a group-relative update may learn from.

Rewards are float32 where TRL compares them: a mean of equal rewards can differ from them by rounding, and what is left
would be an advantage. Adam divides a gradient by its own size, so that such a residue moves the weights by a full step.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

ROUNDING: Final = 8 * torch.finfo(torch.float32).eps
"""Rewards of a group are equal where they differ by no more than this share of the largest term they are sums of."""
FLOOR: Final = 1e-12
"""The same where all terms are near zero: above what float64 leaves of terms that cancel."""


COUNTED: Final = ("nonfinite_rows", "equal_groups", "groups")
"""In the log: sums over the updates since the last report. Rows whose reward is NaN or infinite, groups whose rewards
are equal, all groups."""


@dataclass(frozen=True, slots=True)
class GroupStats:
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


def group_stats(rewards: Tensor, weights: Tensor, group: int) -> GroupStats:
    """*rewards* (N, F) by row and reward function, the N rows group by group; *weights* (F,)."""
    terms = rewards.double() * weights.double()
    kept = torch.isfinite(rewards).all(1)
    inside = kept.view(-1, group)
    total = terms.sum(1).view(-1, group)
    largest = torch.where(inside, terms.abs().sum(1).view(-1, group), 0.0).amax(1)
    top = torch.where(inside, total, -torch.inf).amax(1)
    bottom = torch.where(inside, total, torch.inf).amin(1)
    equal = inside.any(1) & (top - bottom <= (ROUNDING * largest).clamp(min=FLOOR))
    return GroupStats(kept, equal.repeat_interleave(group), int(equal.sum()), len(equal))


class RowExclusion:
    """What a GRPOTrainer of TRL does about such rows, as a class beside it. It reads rewards when TRL has gathered them
    from all processes, and counts for the log."""

    _groups: GroupStats | None
    """Of the batch that is trained on."""
    _counts: Counter[str]
    _group: int
    reward_weights: Any
    accelerator: Any
    model: Any
    _metrics: Any

    def _above(self) -> Any:
        """The trainer's own methods."""
        return super()

    @property
    def idle(self) -> bool:
        """Whether no row of the batch that is trained on has an advantage."""
        return self._groups is not None and self._groups.idle

    def _calculate_rewards(self, *given: Any, **named: Any) -> torch.Tensor:
        """Of all processes (N, F). What is not finite becomes NaN, which TRL leaves out of the group's mean and
        deviation."""
        rewards: torch.Tensor = self._above()._calculate_rewards(*given, **named)
        self._groups = group_stats(rewards, self.reward_weights.to(rewards.device), self._group)
        return rewards.masked_fill(~self._groups.kept[:, None], torch.nan)

    def _exclude_rows(self, found: dict[str, Any]) -> None:
        """Exactly 0 for the advantages of equal rewards, no token of a row whose reward is not finite, and both
        counted."""
        groups = self._groups
        assert groups is not None
        rows = len(found["advantages"])
        own = slice(self.accelerator.process_index * rows, (self.accelerator.process_index + 1) * rows)
        found["advantages"] = found["advantages"].masked_fill((groups.equal | ~groups.kept)[own], 0.0)
        found["completion_mask"] = found["completion_mask"] * groups.kept[own, None]
        found["loss_scale"] = torch.full_like(found["advantages"], groups.loss_scale)
        mode = "train" if self.model.training else "eval"
        self._metrics[mode]["frac_reward_zero_std"][-1] = groups.equal_groups / groups.groups
        self._counts.update(
            nonfinite_rows=groups.nonfinite_rows, equal_groups=groups.equal_groups, groups=groups.groups
        )

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Adds how many rows and groups of the updates since the last report there was nothing to learn from."""
        if "loss" in logs:
            logs |= {name: float(self._counts[name]) for name in COUNTED}
            self._counts.clear()
        self._above().log(logs, start_time)


class SkipIdleUpdates(TrainerCallback):
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
