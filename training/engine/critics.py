"""Trains the two critics: regression on progress (Eq. 3), probability of success (Eq. 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import TrainingArguments

from training.data.columns import Column
from training.data.packing import PackedSequence
from training.engine.step_plan import Plan
from training.engine.trainer import RowsTrainer
from training.mira.losses import potential_loss, value_loss

CriticKind = Literal["potential", "value"]


class CriticTrainer(RowsTrainer):
    """Trains a :class:`training.engine.critic_model.Critic` on the column `TARGET`. *head_rate*: the learning rate of
    its head; None uses the trunk's."""

    def __init__(
        self,
        kind: CriticKind,
        model: nn.Module,
        plan: Plan,
        targets: Tensor,
        arguments: TrainingArguments,
        *,
        head_rate: float | None = None,
    ) -> None:
        super().__init__(model, plan, {Column.TARGET: targets}, arguments)
        self._kind: CriticKind = kind
        self._head_rate = head_rate

    def create_optimizer(self, model: Any = None) -> Any:
        """The library's optimizer, with separate parameter groups for the head."""
        optimizer: Any = super().create_optimizer(model)
        if self._head_rate is None or any(group.get("head") for group in optimizer.param_groups):
            return optimizer
        critic: Any = self.model if model is None else model
        head = {id(weight) for name, weight in critic.named_parameters() if "trunk" not in name.split(".")}
        for group in list(optimizer.param_groups):
            own = [weight for weight in group["params"] if id(weight) in head]
            group["params"] = [weight for weight in group["params"] if id(weight) not in head]
            rest = {name: value for name, value in group.items() if name != "params"}
            optimizer.add_param_group({**rest, "params": own, "lr": self._head_rate, "head": True})
        return optimizer

    def pack_loss(
        self, model: nn.Module, packed: PackedSequence, columns: Mapping[Column, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        logits, target = model(packed), columns[Column.TARGET]
        predicted = torch.sigmoid(logits)
        loss = potential_loss(predicted, target) if self._kind == "potential" else value_loss(logits, target)
        error = (predicted.detach() - target).abs().mean()
        return loss, {"absolute_error": error.item()}
