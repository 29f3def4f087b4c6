"""The loss of group-relative policy optimization: PPO's clipped surrogate and a KL penalty, per token.

M-GRPO of WebAgent-R1 (Wei et al. 2025) uses it for whole episodes: every token of every completion of an episode has
the episode's advantage. Log-probabilities are natural. The caller decides how tokens are weighted in the mean, see
:func:`training.mira.group_advantages.row_weights`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Surrogate(NamedTuple):
    """The loss of each token and whether its ratio was clipped, both (A,)."""

    loss: Tensor
    clipped: Tensor
    """True where the clip removes the token's gradient."""


def clipped_surrogate(
    logprob: Tensor, old: Tensor, advantage: Tensor, *, low: float, high: float, max_ratio: float
) -> Surrogate:
    """`−min(ρ·A, clip(ρ, 1 − low, 1 + high)·A)` with `ρ = exp(log π − log π_old)`. All (A,).

    *high* above *low* leaves more room to improbable tokens (DAPO, Yu et al. 2025). *max_ratio*: bound on ρ, which a
    token with a negative advantage could otherwise increase without limit (dual clip, Ye et al. 2020).
    """
    ratio = torch.exp((logprob - old).clamp(max=80.0))  # float32 overflows at 88; the ratio is bounded below
    within = ratio.clamp(1 - low, 1 + high)
    bounded = ratio.clamp(max=max_ratio)
    clipped = ((advantage > 0) & (ratio > 1 + high)) | ((advantage < 0) & (ratio < 1 - low)) | (ratio > max_ratio)
    return Surrogate(-torch.minimum(bounded * advantage, within * advantage), clipped)


def kl_estimate(logprob: Tensor, reference: Tensor) -> Tensor:
    """Estimate of `KL(π ‖ π_ref)` from sampled tokens: `exp(d) − d − 1` with `d = log π_ref − log π`, (A,), at least 0
    (Schulman's k3, as in GRPO). *d* is limited to 20, so that one token cannot make the loss infinite."""
    apart = (reference - logprob).clamp(max=20.0)
    return torch.exp(apart) - apart - 1
