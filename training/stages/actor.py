"""The actor's stage: one of the objectives of SPEC §1.6 on rows whose advantages and references are columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from transformers import TrainingArguments

from envs.record import Record
from training.data.packing import Packed, by_row
from training.mira.annotate import action_token_logprobs
from training.mira.losses import cloning_loss, regression_loss, webrl_code_loss, weighted_likelihood_loss
from training.stages.plan import Plan
from training.stages.trainer import RowsTrainer

ObjectiveKind = Literal["regression", "weighted", "cloning", "webrl_code"]


class Objective(Record):
    """What the actor minimises, see :mod:`training.mira.losses`."""

    kind: ObjectiveKind = "regression"
    """`regression`: MiRA's Eq. 12, WebRL as its paper has it. `weighted`: exp(A/β), the KL objective of Eq. 15 and AWR.
    `cloning`: the rows that were kept, all alike. `webrl_code`: WebRL as it was published."""
    beta: float = Field(default=0.1, gt=0)
    """β of Eq. 12 and of `exp(A/β)`; the paper gives none. A regression moves the log-probability of an action by
    about A/β where it can."""


class ActorTrainer(RowsTrainer):
    """Trains a causal model. Columns: `advantage`, and `reference`, the `log π_ref(a|s)` of the phase's start."""

    def __init__(
        self,
        objective: Objective,
        model: nn.Module,
        plan: Plan,
        *,
        advantages: Tensor,
        references: Tensor,
        arguments: TrainingArguments,
    ) -> None:
        super().__init__(model, plan, {"advantage": advantages, "reference": references}, arguments)
        self._objective = objective

    def pack_loss(
        self, model: nn.Module, packed: Packed, columns: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        logprob = by_row(action_token_logprobs(model, packed), packed)
        advantage, reference = columns["advantage"], columns["reference"]
        ratio = (logprob - reference).detach()
        return self._loss(logprob, reference, advantage, packed), {
            "logprob": logprob.mean().item(),
            "log_ratio": ratio.mean().item(),
            "log_ratio_spread": ratio.std(correction=0).item(),
        }

    def _loss(self, logprob: Tensor, reference: Tensor, advantage: Tensor, packed: Packed) -> Tensor:
        beta = self._objective.beta
        match self._objective.kind:
            case "regression":
                return regression_loss(logprob, reference, advantage, beta)
            case "weighted":
                return weighted_likelihood_loss(logprob, advantage, beta)
            case "cloning":
                return cloning_loss(logprob, torch.ones_like(logprob, dtype=torch.bool))
            case "webrl_code":
                lengths = torch.bincount(packed.owners, minlength=len(packed.rows))
                return webrl_code_loss(logprob, reference, advantage, beta, tokens=lengths)
