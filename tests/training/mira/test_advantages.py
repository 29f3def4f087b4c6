"""Rewards, returns and advantages, against values computed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.mira.advantages import advantages, outcome_rewards, returns, shaped_rewards, value_targets

ALPHA, GAMMA = 0.3, 0.9


def test_a_success_of_three_steps_by_hand() -> None:
    """r = 0 0 1, P = 0 .25 .75 1, V = .5 .6 .8, α=.3, γ=.9, λ=.5.

    r' = .3·.25, .3·.5, 1 + .3·.25 = .075, .15, 1.075
    G_3 = 1.075, G_2 = .15 + .9·1.075 = 1.1175, G_1 = .075 + .9·1.1175 = 1.08075
    TD: .075+.54-.5 = .115, .15+.72-.6 = .27, 1.075+0-.8 = .275
    MC: .58075, .5175, .275
    """
    shaped = shaped_rewards(outcome_rewards(3, success=True), [0, 0.25, 0.75, 1], ALPHA)
    assert shaped == pytest.approx((0.075, 0.15, 1.075))
    assert returns(shaped, GAMMA) == pytest.approx((1.08075, 1.1175, 1.075))
    found = advantages(shaped, [0.5, 0.6, 0.8], gamma=GAMMA, mix=0.5)
    assert found == pytest.approx(((0.115 + 0.58075) / 2, (0.27 + 0.5175) / 2, 0.275))
    assert advantages(shaped, [0.5, 0.6, 0.8], gamma=GAMMA, mix=1) == pytest.approx((0.115, 0.27, 0.275))
    assert advantages(shaped, [0.5, 0.6, 0.8], gamma=GAMMA, mix=0) == pytest.approx((0.58075, 0.5175, 0.275))


def test_the_discounted_form_of_shaping() -> None:
    """γ inside the difference: .3·(.9·.5 − .2) = .075."""
    assert shaped_rewards([0], [0.2, 0.5], ALPHA, gamma=GAMMA) == pytest.approx((0.075,))


def test_without_shaping_nothing_changes() -> None:
    assert shaped_rewards([0, 1], [0.1, 0.9, 0.4], 0.0) == (0.0, 1.0)


def test_a_perfect_undiscounted_critic_punishes_a_long_success_and_a_discounted_one_does_not() -> None:
    """The conflict named in the documentation: 15 steps, λ=.5, α=.3, progress in a straight line, V as trained."""
    potentials = [step / 15 for step in range(16)]
    shaped = shaped_rewards(outcome_rewards(15, success=True), potentials, ALPHA)
    outcome = advantages(shaped, value_targets(15, success=True, gamma=GAMMA, kind="outcome"), gamma=GAMMA, mix=0.5)
    discounted = advantages(
        shaped, value_targets(15, success=True, gamma=GAMMA, kind="discounted"), gamma=GAMMA, mix=0.5
    )
    assert sum(value < 0 for value in outcome) == 14
    assert all(value > 0 for value in discounted)


def test_value_targets() -> None:
    assert value_targets(3, success=True, gamma=0.9, kind="outcome") == (1.0, 1.0, 1.0)
    assert value_targets(3, success=True, gamma=0.9, kind="discounted") == pytest.approx((0.81, 0.9, 1.0))
    assert value_targets(3, success=False, gamma=0.9, kind="discounted") == (0.0, 0.0, 0.0)
    assert outcome_rewards(0, success=True) == ()


numbers = st.floats(-2, 2)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20))
def test_discounted_targets_are_the_returns_of_the_sparse_reward(rows: list[tuple[float, float]]) -> None:
    steps = len(rows)
    targets = value_targets(steps, success=True, gamma=GAMMA, kind="discounted")
    assert returns(outcome_rewards(steps, success=True), GAMMA) == pytest.approx(targets)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20), st.floats(0, 1))
def test_with_a_perfect_critic_there_is_no_advantage(rows: list[tuple[float, float]], mix: float) -> None:
    rewards = [reward for reward, _ in rows]
    assert advantages(rewards, returns(rewards, GAMMA), gamma=GAMMA, mix=mix) == pytest.approx(
        [0.0] * len(rows), abs=1e-9
    )


@given(st.lists(numbers, min_size=2, max_size=20))
def test_undiscounted_shaping_adds_up_to_the_gain_of_potential(potentials: list[float]) -> None:
    shaped = shaped_rewards([0.0] * (len(potentials) - 1), potentials, ALPHA)
    assert sum(shaped) == pytest.approx(ALPHA * (potentials[-1] - potentials[0]), abs=1e-9)


def test_lengths_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2 rewards need 3 potentials, got 2"):
        shaped_rewards([0, 1], [0, 1], ALPHA)
    with pytest.raises(ValueError, match="need as many values"):
        advantages([0, 1], [0], gamma=GAMMA, mix=0.5)
