"""GRPO's KL divergence, weighted by β, or by β and each completion's reward (GuirlVG's adversarial KL factor, Eq. 3.1).

TRL computes the divergence, `π_ref/π − log(π_ref/π) − 1` a token, and adds `self.beta * per_token_kl` to the loss in
`GRPOTrainer._compute_loss`. β is one number there: no hook takes a weight for each completion. With `kl_by_reward`,
:func:`kl_weighted_by_reward` therefore replaces the attribute `beta` of TRL's trainer while one loss is computed. The
replacement, :class:`PerCompletionBeta`, is a float, so that `self.beta != 0.0` still holds; its product with a
divergence scales each row by the row's own weight.

This depends on TRL's code, pinned in pyproject.toml. `tests/training/grpo/test_kl.py` pins how TRL uses `beta`;
`test_the_loss_is_the_papers` in `tests/training/grpo/test_trainer.py` compares loss and gradient with plain PyTorch.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

KL_WEIGHTS = "kl_weights"
"""Key of a scored batch: (B,) a weight for each completion, its reward's share of the greatest reward, 0 to 1."""


class PerCompletionBeta(float):
    """A β whose product with a divergence (B, T) scales each row by its own weight (B,)."""

    weights: torch.Tensor

    def __mul__(self, divergence: Any) -> Any:
        return float(self) * self.weights.unsqueeze(1) * divergence


@contextmanager
def kl_weighted_by_reward(trainer: Any, weights: torch.Tensor) -> Generator[None]:
    """Replaces `trainer.beta`, a float, by a β with a weight for each row of the batch, and restores it at the end."""
    beta = trainer.beta
    per_completion = PerCompletionBeta(beta)
    per_completion.weights = weights
    trainer.beta = per_completion
    try:
        yield
    finally:
        trainer.beta = beta
