"""Trains the actor: a loss of `training.mira.losses` on rows with columns of advantages and reference logprobs."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from transformers import TrainingArguments

from training.data.columns import Column
from training.data.packing import PackedSequence, sum_by_row
from training.engine.annotate import completion_token_logprobs
from training.engine.settings import Objective
from training.engine.step_plan import Plan
from training.engine.trainer import RowsTrainer
from training.mira.losses import anchor_loss, cloning_loss, regression_loss, webrl_code_loss, weighted_likelihood_loss


class ActorTrainer(RowsTrainer):
    """Trains a causal model. Columns: `ADVANTAGE`, `REFERENCE`; for an objective with an anchor `SUCCESS`; for rows
    of unequal weight `WEIGHT`."""

    def __init__(
        self,
        objective: Objective,
        model: nn.Module,
        plan: Plan,
        *,
        advantages: Tensor,
        references: Tensor,
        successes: Tensor | None = None,
        weights: Tensor | None = None,
        arguments: TrainingArguments,
    ) -> None:
        columns = {Column.ADVANTAGE: advantages, Column.REFERENCE: references}
        if objective.anchor:
            if successes is None:
                raise ValueError("an anchor needs the column of successes")
            columns[Column.SUCCESS] = successes
        if weights is not None:
            columns[Column.WEIGHT] = weights
        super().__init__(model, plan, columns, arguments)
        self._objective = objective

    def pack_loss(
        self, model: nn.Module, packed: PackedSequence, columns: Mapping[Column, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        logprob = sum_by_row(completion_token_logprobs(model, packed), packed)
        ratio = (logprob - columns[Column.REFERENCE]).detach()
        return self._loss(logprob, columns, packed), {
            "logprob": logprob.mean().item(),
            "log_ratio": ratio.mean().item(),
            "log_ratio_spread": ratio.std(correction=0).item(),
        }

    def _loss(self, logprob: Tensor, columns: Mapping[Column, Tensor], packed: PackedSequence) -> Tensor:
        advantage, reference = columns[Column.ADVANTAGE], columns[Column.REFERENCE]
        objective, beta, weight = self._objective, self._objective.beta, columns.get(Column.WEIGHT)
        match objective.kind:
            case "regression":
                less = objective.negative_weight
                loss = regression_loss(logprob, reference, advantage, beta, negative_weight=less, weight=weight)
                if objective.anchor:
                    loss = loss + objective.anchor * anchor_loss(logprob, columns[Column.SUCCESS], weight)
                return loss
            case "weighted":
                return weighted_likelihood_loss(logprob, advantage, beta, weight=weight)
            case "cloning":
                return cloning_loss(logprob, torch.ones_like(logprob, dtype=torch.bool), weight)
            case "webrl_code":
                lengths = torch.bincount(packed.owners, minlength=len(packed.states))[packed.texts]
                return webrl_code_loss(logprob, reference, advantage, beta, tokens=lengths, weight=weight)
            case "clipped":
                raise ValueError("the clipped surrogate has a loss per token: use ClippedActorTrainer")
