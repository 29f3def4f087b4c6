"""The KL divergence weighted by reward: the replacement of TRL's `beta`, and how TRL uses this attribute.

The loss and its gradient with this weight are compared with plain PyTorch in `test_trainer.py`.
"""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace

import pytest
import torch

from training.grpo.kl import PerCompletionBeta, kl_weighted_by_reward


def test_each_row_is_scaled_by_its_own_weight() -> None:
    trainer = SimpleNamespace(beta=0.5)
    divergence = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    with kl_weighted_by_reward(trainer, torch.tensor([1.0, 0.25])):
        product = trainer.beta * divergence
        assert trainer.beta != 0.0
    torch.testing.assert_close(product, torch.tensor([[0.5, 1.0], [0.375, 0.5]]))


def test_beta_is_restored_after_an_error() -> None:
    trainer = SimpleNamespace(beta=0.5)
    with pytest.raises(ValueError, match="no loss"), kl_weighted_by_reward(trainer, torch.ones(2)):
        assert isinstance(trainer.beta, PerCompletionBeta)
        raise ValueError("no loss")
    assert type(trainer.beta) is float and trainer.beta == 0.5


def test_trl_multiplies_the_divergence_by_beta_and_otherwise_compares_it_with_zero() -> None:
    """The contract of the replacement: `beta` is the left factor, and no other arithmetic uses it."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    source = inspect.getsource(GRPOTrainer._compute_loss)
    uses = set(re.findall(r"self\.beta\b[^:\n]*", source))
    assert uses == {"self.beta != 0.0", "self.beta * per_token_kl"}
