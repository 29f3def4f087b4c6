"""Losses of the critics and the actor, for MiRA and every baseline, as pure functions. Equations are the MiRA paper's.

Shapes: B actions (rows of a batch), L tokens. Log-probabilities are natural. Every loss is a mean over its rows, so it
does not depend on how rows are padded or packed. The caller weights batches of unequal size. *weight* (B,), where it is
given, multiplies the rows' terms, see :func:`training.mira.credit.step_weights`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

MAX_WEIGHT = 20.0
"""Bound on `exp(A/β)`, so that one action cannot dominate a batch (as in published AWR implementations)."""


def weighted_mean(terms: Tensor, weight: Tensor | None) -> Tensor:
    """`mean w·terms`, both (B,); the plain mean without *weight*, whose mean over all rows of a stage is 1."""
    return terms.mean() if weight is None else (weight * terms).mean()


def token_logprobs(logits: Tensor, tokens: Tensor) -> Tensor:
    """Log-probability of each of *tokens* (…,) under *logits* (…, V), in float32 at least, shape (…,)."""
    wide = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    chosen = wide.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return chosen - wide.logsumexp(-1)


def potential_loss(predicted: Tensor, progress: Tensor) -> Tensor:
    """Eq. 3: `mean (P − p*)²`. Both (B,), in [0, 1]."""
    return (predicted - progress).square().mean()


def value_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Eq. 4: binary cross-entropy. *logits* (B,), before the sigmoid; *target* (B,) in [0, 1]."""
    return functional.binary_cross_entropy_with_logits(logits, target)


def regression_loss(
    logprob: Tensor,
    reference: Tensor,
    advantage: Tensor,
    beta: float,
    *,
    negative_weight: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """MiRA's actor, Eq. 12: `mean (β·(log π − log π_ref) − A)²`. All (B,).

    Its gradient is Eq. 13, `−2β·mean[(A − β·log-ratio)·∇log π]`: it lowers the probability of actions with a negative
    advantage. *negative_weight* multiplies the squared errors of those actions; the mean is still over all rows.
    """
    error = (beta * (logprob - reference) - advantage).square()
    return weighted_mean(torch.where(advantage < 0, negative_weight * error, error), weight)


def anchor_loss(logprob: Tensor, success: Tensor, weight: Tensor | None = None) -> Tensor:
    """`−mean success·log π` over all rows, both (B,); *success* is 1 for an action of a successful trajectory, else 0.

    Added to a regression, it keeps the likelihood of successful actions, which lowering failures would erode. It is not
    in the paper; iterative RPO (Pang et al. 2024) adds a likelihood term to a preference loss in the same way.
    """
    return -weighted_mean(success * logprob, weight)


def weighted_likelihood_loss(
    logprob: Tensor,
    advantage: Tensor,
    beta: float,
    *,
    weight: Tensor | None = None,
) -> Tensor:
    """`−mean exp(A/β)·log π`, weights at most `MAX_WEIGHT`. All (B,).

    With MiRA's advantage it is the KL objective of Eq. 15 and 21; with the plain return's, AWR (Peng et al. 2019). It
    can only raise probabilities.
    """
    likelihood = torch.exp(advantage / beta).clamp(max=MAX_WEIGHT)
    return -weighted_mean(likelihood.detach() * logprob, weight)


def cloning_loss(logprob: Tensor, keep: Tensor, weight: Tensor | None = None) -> Tensor:
    """Filtered behaviour cloning: `−mean log π` over the rows where *keep* (B,) is True; 0 without such rows."""
    kept = torch.where(keep, logprob if weight is None else weight * logprob, torch.zeros_like(logprob))
    return -kept.sum() / keep.sum().clamp(min=1)


def webrl_code_loss(
    logprob: Tensor,
    reference: Tensor,
    advantage: Tensor,
    beta: float,
    *,
    tokens: Tensor | None = None,
    weight: Tensor | None = None,
) -> Tensor:
    """The loss of WebRL's published code: `mean SmoothL1(β·log-ratio, 1)/β`, target +1. Unlike in the paper, actions
    without a positive advantage have no loss; the mean is still over all rows.

    *tokens* (B,): number of completion tokens; the log-ratio is divided by it, as the code does for a batch of one.
    """
    ratio = logprob - reference
    if tokens is not None:
        ratio = ratio / tokens.clamp(min=1)
    distance = functional.smooth_l1_loss(beta * ratio, torch.ones_like(ratio), reduction="none") / beta
    return weighted_mean(torch.where(advantage > 0, distance, torch.zeros_like(distance)), weight)
