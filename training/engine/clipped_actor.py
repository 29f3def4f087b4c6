"""Trains the actor with the clipped surrogate: each token of a row has the row's advantage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from transformers import TrainingArguments

from training.data.columns import Column
from training.data.packing import PackedSequence, row_tokens
from training.data.rows import Row
from training.engine.annotate import completion_token_logprobs
from training.engine.settings import Objective
from training.engine.step_plan import Plan
from training.engine.trainer import RowsTrainer
from training.mira.clipped_surrogate import clipped_surrogate, kl_estimate


class ClippedActorTrainer(RowsTrainer):
    """Trains a causal model. Columns: `ADVANTAGE` and `WEIGHT`. The log-probabilities at play, and with a KL penalty
    those of the start, are the rows' own."""

    def __init__(
        self,
        objective: Objective,
        model: nn.Module,
        plan: Plan,
        *,
        rows: Sequence[Row],
        advantages: Tensor,
        weights: Tensor,
        arguments: TrainingArguments,
    ) -> None:
        """Raises ValueError for rows without the log-probabilities that the objective needs."""
        super().__init__(model, plan, {Column.ADVANTAGE: advantages, Column.WEIGHT: weights}, arguments)
        self._objective = objective
        self._old = [_needed(row.sampled, row, "at play") for row in rows]
        self._start = [_needed(row.start, row, "under the start") for row in rows] if objective.kl else []

    def pack_loss(
        self, model: nn.Module, packed: PackedSequence, columns: Mapping[Column, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        places, owners = row_tokens(packed)
        logprob = completion_token_logprobs(model, packed)[places]
        old = _joined(self._old, packed, logprob)
        objective = self._objective
        advantage = columns[Column.ADVANTAGE].to(logprob.dtype)[owners]
        surrogate = clipped_surrogate(
            logprob, old, advantage, low=objective.clip_low, high=objective.clip_high, max_ratio=objective.max_ratio
        )
        loss = surrogate.loss
        numbers = {
            "logprob": logprob.detach().mean().item(),
            "log_ratio": (logprob - old).detach().mean().item(),
            "clipped": surrogate.clipped.float().mean().item(),
        }
        if objective.kl:
            divergence = kl_estimate(logprob, _joined(self._start, packed, logprob))
            loss = loss + objective.kl * divergence
            numbers["kl"] = divergence.detach().mean().item()
        weighted = loss * columns[Column.WEIGHT].to(loss.dtype)[owners]
        return weighted.sum() / len(packed.rows), numbers


def _joined(by_row: Sequence[Tensor], packed: PackedSequence, like: Tensor) -> Tensor:
    return torch.cat([by_row[row] for row in packed.rows]).to(device=like.device, dtype=like.dtype)


def _needed(values: Sequence[float] | None, row: Row, when: str) -> Tensor:
    if values is None or len(values) != len(row.completion):
        raise ValueError(f"a row lacks the log-probabilities of its {len(row.completion)} completion tokens {when}")
    return torch.tensor(values)
