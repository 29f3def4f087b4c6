"""The two critics' stages: progress regressed (Eq. 3), the outcome as a probability (Eq. 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import TrainingArguments

from training.data.packing import PackedSequence
from training.engine.step_plan import Plan
from training.engine.trainer import RowsTrainer
from training.mira.losses import potential_loss, value_loss

CriticKind = Literal["potential", "value"]


class CriticTrainer(RowsTrainer):
    """Trains a :class:`training.engine.critic_model.Critic` towards the column `target`, in [0, 1]. *head_rate*: of its
    head; None is the trunk's."""

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
        super().__init__(model, plan, {"target": targets}, arguments)
        self._kind: CriticKind = kind
        self._head_rate = head_rate

    def create_optimizer(self, model: Any = None) -> Any:
        """The library's, with the head in groups of its own."""
        optimizer: Any = super().create_optimizer(model)
        if self._head_rate is None or any(group.get("head") for group in optimizer.param_groups):
            return optimizer
        whole: Any = self.model if model is None else model
        head = {id(weight) for name, weight in whole.named_parameters() if "trunk" not in name.split(".")}
        for group in list(optimizer.param_groups):
            own = [weight for weight in group["params"] if id(weight) in head]
            group["params"] = [weight for weight in group["params"] if id(weight) not in head]
            rest = {name: value for name, value in group.items() if name != "params"}
            optimizer.add_param_group({**rest, "params": own, "lr": self._head_rate, "head": True})
        return optimizer

    def pack_loss(
        self, model: nn.Module, packed: PackedSequence, columns: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        logits, target = model(packed), columns["target"]
        said = torch.sigmoid(logits)
        loss = potential_loss(said, target) if self._kind == "potential" else value_loss(logits, target)
        error = (said.detach() - target).abs().mean()
        return loss, {"absolute_error": error.item()}
