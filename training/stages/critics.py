"""The two critics' stages: progress regressed (Eq. 3), the outcome as a probability (Eq. 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn
from transformers import TrainingArguments

from training.data.packing import Packed
from training.mira.losses import potential_loss, value_loss
from training.stages.plan import Plan
from training.stages.trainer import RowsTrainer

CriticKind = Literal["potential", "value"]


class CriticTrainer(RowsTrainer):
    """Trains a :class:`training.stages.critic_model.Critic` towards the column `target`, in [0, 1]."""

    def __init__(
        self, kind: CriticKind, model: nn.Module, plan: Plan, targets: Tensor, arguments: TrainingArguments
    ) -> None:
        super().__init__(model, plan, {"target": targets}, arguments)
        self._kind: CriticKind = kind

    def pack_loss(
        self, model: nn.Module, packed: Packed, columns: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        logits, target = model(packed), columns["target"]
        said = torch.sigmoid(logits)
        loss = potential_loss(said, target) if self._kind == "potential" else value_loss(logits, target)
        error = (said.detach() - target).abs().mean()
        return loss, {"absolute_error": error.item()}
