"""Excludes rows and groups without a learning signal from a GRPO update.

TRL compares rewards in float32. The mean of equal rewards can differ from them by rounding, and the residue would be an
advantage. Adam normalises gradients, so such a residue would move the weights by a full step.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import torch
from accelerate.utils import DistributedType
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

ROUNDING: Final = 8 * torch.finfo(torch.float32).eps
"""Rewards of a group are equal if they differ by at most this share of the largest sum of absolute terms."""
FLOOR: Final = 1e-12
"""Minimum tolerance, for terms near zero. It is above the float64 residue of terms that cancel."""


COUNTED: Final = ("nonfinite_rows", "equal_groups", "groups")
"""Counters in the log, summed over the updates since the last report: rows with a NaN or infinite reward, groups with
equal rewards, all groups."""


@dataclass(frozen=True, slots=True)
class GroupStats:
    """Classifies the rows of a batch, of all processes, by their rewards."""

    kept: Tensor
    """(N,) bool: the reward is finite. Other rows are excluded from mean, deviation, loss and gradient."""
    equal: Tensor
    """(N,) bool: the kept rewards of the row's group are equal. The advantage is exactly 0."""
    equal_groups: int
    """Number of groups with kept rows that all have the same reward."""
    groups: int

    @property
    def nonfinite_rows(self) -> int:
        return int((~self.kept).sum())

    @property
    def loss_scale(self) -> float:
        """Factor that turns a mean over all N rows into a mean over the kept rows; 1 if no row is kept."""
        return self.kept.numel() / max(1, int(self.kept.sum()))

    @property
    def idle(self) -> bool:
        """Whether every advantage is 0."""
        return bool((self.equal | ~self.kept).all())


def group_stats(rewards: Tensor, weights: Tensor, group: int) -> GroupStats:
    """Computes the statistics of *rewards* (N, F) by row and reward function, with consecutive rows of a group;
    *weights* (F,)."""
    terms = rewards.double() * weights.double()
    kept = torch.isfinite(rewards).all(1)
    kept_by_group = kept.view(-1, group)
    total = terms.sum(1).view(-1, group)
    largest = torch.where(kept_by_group, terms.abs().sum(1).view(-1, group), 0.0).amax(1)
    top = torch.where(kept_by_group, total, -torch.inf).amax(1)
    bottom = torch.where(kept_by_group, total, torch.inf).amin(1)
    equal = kept_by_group.any(1) & (top - bottom <= (ROUNDING * largest).clamp(min=FLOOR))
    return GroupStats(kept, equal.repeat_interleave(group), int(equal.sum()), len(equal))


class RowExclusion:
    """Mixin for TRL's GRPOTrainer that excludes rows without a signal. It reads the rewards after TRL has gathered them
    from all processes, and counts excluded rows for the log."""

    _groups: GroupStats | None
    """Statistics of the current batch."""
    _counts: Counter[str]
    _group: int
    reward_weights: Any
    accelerator: Any
    model: Any
    _metrics: Any

    def _base(self) -> Any:
        """The methods of TRL's trainer."""
        return super()

    @property
    def idle(self) -> bool:
        """Whether every advantage of the current batch is 0."""
        return self._groups is not None and self._groups.idle

    def create_accelerator_and_postprocess(self) -> None:
        self._base().create_accelerator_and_postprocess()
        skip_idle_backward(self)

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Rewards of all processes (N, F). Values that are not finite become NaN, which TRL excludes from the group's
        mean and deviation."""
        rewards: torch.Tensor = self._base()._calculate_rewards(*args, **kwargs)
        self._groups = group_stats(rewards, self.reward_weights.to(rewards.device), self._group)
        return rewards.masked_fill(~self._groups.kept[:, None], torch.nan)

    def _exclude_rows(self, scored: dict[str, Any]) -> None:
        """Sets advantages of groups with equal rewards to exactly 0, masks all tokens of rows with a reward that is not
        finite, and counts both."""
        groups = self._groups
        assert groups is not None
        rows = len(scored["advantages"])
        own = slice(self.accelerator.process_index * rows, (self.accelerator.process_index + 1) * rows)
        scored["advantages"] = scored["advantages"].masked_fill((groups.equal | ~groups.kept)[own], 0.0)
        scored["completion_mask"] = scored["completion_mask"] * groups.kept[own, None]
        scored["loss_scale"] = torch.full_like(scored["advantages"], groups.loss_scale)
        mode = "train" if self.model.training else "eval"
        self._metrics[mode]["frac_reward_zero_std"][-1] = groups.equal_groups / groups.groups
        self._counts.update(
            nonfinite_rows=groups.nonfinite_rows, equal_groups=groups.equal_groups, groups=groups.groups
        )

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Adds the counters of excluded rows and groups since the last report."""
        if "loss" in logs:
            logs |= {name: float(self._counts[name]) for name in COUNTED}
            self._counts.clear()
        self._base().log(logs, start_time)


def skip_idle_backward(trainer: Any) -> None:
    """Skips the backward passes of a batch whose advantages are all 0 (*trainer*`.idle`) under DeepSpeed, which makes
    the optimizer step in the last of them, before any callback."""
    accelerator = trainer.accelerator
    if accelerator.distributed_type != DistributedType.DEEPSPEED:
        return
    backward = accelerator.backward

    def unless_idle(loss: Tensor, **options: Any) -> None:
        if not trainer.idle:
            backward(loss, **options)

    accelerator.backward = unless_idle


class SkipIdleUpdates(TrainerCallback):
    """Skips the optimizer step if every advantage of a batch is 0 (*trainer*`.idle`). With a zero gradient, Adam's
    moments and the weight decay would still move the weights, and the KL divergence alone would move them back to the
    start. DeepSpeed's step is skipped by :func:`skip_idle_backward`."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        if self._trainer.idle:
            self._trainer.model.zero_grad(set_to_none=True)
