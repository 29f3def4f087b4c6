"""Shaped rewards, returns, advantages and value targets of one episode (MiRA paper: Eq. 1, 10, 11).

Plain numbers, one list per episode, so that they can be inspected before any training: T actions, T+1 states.
`potentials[t]` and `values[t]` belong to the state before action t+1; the last one to the state after the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

ValueTarget = Literal["outcome", "discounted"]


def shaped_rewards(
    rewards: Sequence[float], potentials: Sequence[float], alpha: float, *, gamma: float = 1.0
) -> tuple[float, ...]:
    """`r'_t = r_t + α·(γ·P(s_(t+1)) − P(s_t))`, length T.

    With γ = 1, the default, the shaping of the MiRA paper; with the return's γ, potential-based shaping as Ng et al.
    (1999) define it, which leaves the best policy unchanged only if the potential of the end is 0 — here it is not.
    Raises ValueError unless there is one potential more than rewards.
    """
    _check(rewards, potentials, "potentials")
    steps = zip(rewards, potentials, potentials[1:], strict=False)
    return tuple(reward + alpha * (gamma * after - before) for reward, before, after in steps)


def returns(rewards: Sequence[float], gamma: float) -> tuple[float, ...]:
    """`G_t = Σ_(u≥t) γ^(u−t)·r_u` (Eq. 11), length T."""
    totals: list[float] = []
    following = 0.0
    for reward in reversed(rewards):
        following = reward + gamma * following
        totals.append(following)
    return tuple(reversed(totals))


def advantages(rewards: Sequence[float], values: Sequence[float], *, gamma: float, mix: float) -> tuple[float, ...]:
    """`A_t = λ·(r_t + γ·V(s_(t+1)) − V(s_t)) + (1−λ)·(G_t − V(s_t))` (Eq. 10), length T.

    *rewards*: shaped or not, length T. *values*: V of the states before each action, length T; the value of the state
    after the last action is 0 by definition. *mix*: λ in [0, 1]; 1 is the TD error alone, 0 the Monte-Carlo advantage.
    """
    if len(rewards) != len(values):
        raise ValueError(f"{len(rewards)} rewards need as many values, got {len(values)}")
    following = (*values[1:], 0.0)
    terms = zip(rewards, values, following, returns(rewards, gamma), strict=True)
    return tuple(
        mix * (reward + gamma * after - before) + (1 - mix) * (total - before) for reward, before, after, total in terms
    )


STEP_COST: Final = 0.05
"""What each step costs in WebRL's published code."""


def webrl_code_advantages(
    rewards: Sequence[float], values: Sequence[float], *, success: bool, gamma: float
) -> tuple[float, ...]:
    """The advantages of WebRL's published code: `V(s_(t+1)) − V(s_t) − 0.05 + outcome + G_t`, length T.

    The bootstrap has no γ, and the outcome counts on every step. In a success nearly every action is positive; in a
    failure those actions after which V rose by more than 0.05. The value of the state after the last action is 0.
    """
    if len(rewards) != len(values):
        raise ValueError(f"{len(rewards)} rewards need as many values, got {len(values)}")
    terms = zip(values, (*values[1:], 0.0), returns(rewards, gamma), strict=True)
    return tuple(after - before - STEP_COST + float(success) + total for before, after, total in terms)


def value_targets(steps: int, *, success: bool, gamma: float, kind: ValueTarget) -> tuple[float, ...]:
    """Training targets of V for the states before each of T actions (Eq. 4).

    `outcome`: the episode's 0 or 1, as in the paper. `discounted`: `γ^(T−t)·outcome`, the return of Eq. 11 under a
    perfect V. With `outcome` and γ < 1 a long success has negative advantages on nearly all of its steps.
    """
    outcome = float(success)
    if kind == "outcome":
        return (outcome,) * steps
    return tuple(outcome * gamma ** (steps - step) for step in range(1, steps + 1))


def outcome_rewards(steps: int, *, success: bool) -> tuple[float, ...]:
    """The sparse reward: 1 for the last action of a success, else 0; length T."""
    return (*(0.0,) * (steps - 1), float(success)) if steps else ()


def _check(rewards: Sequence[float], states: Sequence[float], name: str) -> None:
    if len(states) != len(rewards) + 1:
        raise ValueError(f"{len(rewards)} rewards need {len(rewards) + 1} {name}, got {len(states)}")
