"""Losses, against values computed by hand and against autograd, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from training.mira import losses


def row(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_token_logprobs_are_those_of_the_softmax() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)], [1.0, 1.0]], dtype=torch.float64)
    assert losses.token_logprobs(logits, torch.tensor([1, 0])).tolist() == pytest.approx(
        [math.log(0.75), math.log(0.5)]
    )
    halves = losses.token_logprobs(logits.to(torch.bfloat16), torch.tensor([1, 0]))
    assert halves.dtype is torch.float32


def test_potential_loss() -> None:
    assert losses.potential_loss(row(0.2, 1.0), row(0.5, 0.5)).item() == pytest.approx((0.09 + 0.25) / 2)


def test_value_loss() -> None:
    """σ(0) = ½ costs ln 2 whatever the target; σ(ln 3) = ¾ against 1 costs ln 4/3; against .9: .9·ln 4/3 + .1·ln 4."""
    assert losses.value_loss(row(0.0), row(0.3)).item() == pytest.approx(math.log(2))
    result = losses.value_loss(row(math.log(3), math.log(3)), row(1.0, 0.9)).item()
    by_hand = (math.log(4 / 3) + 0.9 * math.log(4 / 3) + 0.1 * math.log(4)) / 2
    assert result == pytest.approx(by_hand)


def test_regression_loss() -> None:
    """β=.5: (.5·1 − 1)² = .25 and (.5·(−2) + .4)² = .36."""
    assert losses.regression_loss(row(-1, -5), row(-2, -3), row(1, -0.4), 0.5).item() == pytest.approx(
        (0.25 + 0.36) / 2
    )


def test_a_negative_advantage_may_count_less() -> None:
    """The squares above, .25 and .36, the second at weight ¼."""
    result = losses.regression_loss(row(-1, -5), row(-2, -3), row(1, -0.4), 0.5, negative_weight=0.25)
    assert result.item() == pytest.approx((0.25 + 0.09) / 2)


def test_an_anchor_is_the_likelihood_of_successes_over_all_rows() -> None:
    assert losses.anchor_loss(row(-1, -2, -4), row(1, 0, 1)).item() == pytest.approx(5 / 3)
    assert losses.anchor_loss(row(-1, -2), row(0, 0)).item() == 0


def test_the_gradient_of_the_regression_is_equation_13() -> None:
    """∇ = −2β·mean[(A − β·log-ratio)·∇log π], through a softmax policy with its own parameters."""
    torch.manual_seed(0)
    theta = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    actions, reference, advantage = (
        torch.tensor([0, 3, 1, 1, 2]),
        torch.randn(5, dtype=torch.float64),
        row(1, -1, 0, 2, -0.3),
    )
    beta = 0.7
    logprob = losses.token_logprobs(theta, actions)
    losses.regression_loss(logprob, reference, advantage, beta).backward()
    with torch.no_grad():
        score = torch.eye(4, dtype=torch.float64)[actions] - theta.softmax(-1)
        gap = advantage - beta * (losses.token_logprobs(theta, actions) - reference)
        by_hand = -2 * beta * gap.unsqueeze(-1) * score / 5
    assert theta.grad is not None
    assert torch.allclose(theta.grad, by_hand, atol=1e-12)


def test_regression_lowers_a_bad_action_and_weighted_likelihood_does_not() -> None:
    def regression(p: torch.Tensor) -> torch.Tensor:
        return losses.regression_loss(p, row(-1), row(-1), 1.0)

    def weighted(p: torch.Tensor) -> torch.Tensor:
        return losses.weighted_likelihood_loss(p, row(-1), 1.0)

    for loss, sign in ((regression, 1), (weighted, -1)):
        logprob = row(-1).requires_grad_()
        loss(logprob).backward()
        assert logprob.grad is not None and math.copysign(1, logprob.grad.item()) == sign


def test_weighted_likelihood_loss() -> None:
    """β=2: weights e^½ and 20 (the bound, e^50 is too much)."""
    result = losses.weighted_likelihood_loss(row(-1, -2), row(1, 100), 2.0).item()
    assert result == pytest.approx((math.exp(0.5) * 1 + 20 * 2) / 2)


def test_cloning_counts_only_selected_rows() -> None:
    keep = torch.tensor([True, False, True])
    assert losses.cloning_loss(row(-1, float("nan"), -3), keep).item() == pytest.approx(2.0)
    assert losses.cloning_loss(row(-1, -2, -3), torch.zeros(3, dtype=torch.bool)).item() == 0.0


def test_webrl_as_published_ignores_negative_advantages() -> None:
    """β=2, log-ratio .25: |.5 − 1| = .5 → ½·.25 = .125, over β: .0625. The second row has no loss and no gradient."""
    logprob = row(-1.0, -1.0).requires_grad_()
    loss = losses.webrl_code_loss(logprob, row(-1.25, -3), row(1, -1), 2.0)
    assert loss.item() == pytest.approx(0.0625 / 2)
    loss.backward()
    assert logprob.grad is not None and logprob.grad[1].item() == 0.0 and logprob.grad[0].item() < 0
    shorter = losses.webrl_code_loss(row(-1.0), row(-1.5), row(1), 2.0, tokens=torch.tensor([2]))
    assert shorter.item() == pytest.approx(0.0625)


@pytest.mark.parametrize("loss", [losses.regression_loss, losses.webrl_code_loss])
def test_losses_do_not_depend_on_how_a_batch_is_split(loss: Callable[[Tensor, Tensor, Tensor, float], Tensor]) -> None:
    """Parts of two rows; in the last one both advantages are negative. Every part is weighted by its share of rows."""
    logprob, reference = row(-1, -2, -3, -1, -2, -1), row(-2, -1, -3, -2, -1, -3)
    advantage = row(1, 0.5, 1, -1, -1, -2)
    full = loss(logprob, reference, advantage, 0.3)
    parts = [loss(logprob[i : i + 2], reference[i : i + 2], advantage[i : i + 2], 0.3) for i in (0, 2, 4)]
    assert torch.stack(parts).mean().item() == pytest.approx(full.item())
