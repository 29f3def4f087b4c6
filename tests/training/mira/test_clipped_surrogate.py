"""The clipped surrogate and the KL estimate against values computed by hand, and the gradient on a toy policy."""

from __future__ import annotations

import math

import pytest
import torch

from training.mira.clipped_surrogate import Surrogate, clipped_surrogate, kl_estimate
from training.mira.group_advantages import relative_rewards


def surrogate(ratio: float, advantage: float, *, low: float = 0.2, high: float = 0.28) -> tuple[Surrogate, float]:
    """The surrogate of one token, and the gradient of its loss with respect to log π."""
    logprob = torch.tensor([math.log(ratio) - 1], requires_grad=True)
    made = clipped_surrogate(
        logprob, torch.tensor([-1.0]), torch.tensor([advantage]), low=low, high=high, max_ratio=10.0
    )
    made.loss.sum().backward()
    assert logprob.grad is not None
    return made, logprob.grad.item()


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope", "clipped"),
    [
        (1.0, 2.0, -2.0, -2.0, False),
        (1.27, 1.0, -1.27, -1.27, False),
        (1.5, 1.0, -1.28, 0.0, True),
        (0.5, 1.0, -0.5, -0.5, False),
        (0.5, -1.0, 0.8, 0.0, True),
        (0.9, -1.0, 0.9, 0.9, False),
        (5.0, -1.0, 5.0, 5.0, False),
        (50.0, -1.0, 10.0, 0.0, True),
    ],
)
def test_the_clip_is_asymmetric_and_only_holds_back(
    ratio: float, advantage: float, loss: float, slope: float, clipped: bool
) -> None:
    made, gradient = surrogate(ratio, advantage)
    assert made.loss.item() == pytest.approx(loss, rel=1e-5)
    assert gradient == pytest.approx(slope, rel=1e-5)
    assert made.clipped.item() == clipped


def test_extreme_ratios_stay_finite() -> None:
    made = clipped_surrogate(
        torch.tensor([0.0, -300.0]),
        torch.tensor([-300.0, 0.0]),
        torch.tensor([-1.0, 1.0]),
        low=0.2,
        high=0.2,
        max_ratio=10,
    )
    assert made.loss.tolist() == pytest.approx([10.0, 0.0])
    assert math.isfinite(kl_estimate(torch.tensor([-300.0]), torch.tensor([0.0])).item())


def test_the_kl_estimate_is_that_of_the_distributions_in_the_mean() -> None:
    own, reference = torch.tensor([0.7, 0.2, 0.1]).log(), torch.tensor([0.5, 0.3, 0.2]).log()
    exact = (own.exp() * (own - reference)).sum()
    assert (own.exp() * kl_estimate(own, reference)).sum().item() == pytest.approx(exact.item(), rel=1e-5)
    assert kl_estimate(own, own).tolist() == [0, 0, 0]


def test_a_step_raises_what_was_better_than_its_group() -> None:
    """A policy with three answers; the group sampled each, and only the second was rewarded."""
    logits = torch.zeros(3, requires_grad=True)
    answers, advantages = torch.tensor([0, 1, 2, 0]), torch.tensor(relative_rewards([0, 1, 0, 0], deviation=True))
    for _ in range(3):
        logprob = logits.log_softmax(-1)[answers]
        loss = clipped_surrogate(logprob, logprob.detach(), advantages, low=0.2, high=0.2, max_ratio=10).loss.mean()
        (gradient,) = torch.autograd.grad(loss, logits)
        with torch.no_grad():
            logits -= gradient
    share = logits.softmax(-1).tolist()
    assert share[1] > 0.6 and share[0] < share[2] < 1 / 3, "the answer that failed twice falls most"
