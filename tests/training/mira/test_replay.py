"""The replay buffer and its perplexity band."""

from __future__ import annotations

import math

import pytest

from training.mira.replay import Band, ReplayBuffer, perplexity


def test_perplexity_is_one_over_the_geometric_mean() -> None:
    assert perplexity([math.log(0.5), math.log(0.5)]) == pytest.approx(2.0)
    assert perplexity([0.0]) == 1.0
    assert perplexity([math.log(0.9), math.log(0.4)]) == pytest.approx(1 / math.sqrt(0.36))
    with pytest.raises(ValueError, match="at least one"):
        perplexity([])


@pytest.mark.parametrize(
    ("value", "kept"), [(1 / 0.95, False), (1 / 0.9, True), (1.5, True), (2.0, True), (2.01, False), (1.0, False)]
)
def test_the_papers_band(value: float, kept: bool) -> None:
    assert Band().holds(value) is kept


@pytest.mark.parametrize(
    ("low", "high", "problem"),
    [
        (0.5, 0.95, "a perplexity is at least 1: the limits are perplexities 1/p, not probabilities p"),
        (1 / 0.5, 1 / 0.9, "the band from 2 to 1.11111 holds no perplexity"),
        (math.nan, 2.0, "greater than or equal to 0"),
    ],
)
def test_a_band_that_would_replay_nothing_is_refused(low: float, high: float, problem: str) -> None:
    """WebRL's code gives its band as probabilities, from 0.5 to 0.95."""
    with pytest.raises(ValueError, match=problem):
        Band(low=low, high=high)
    assert Band(low=1.0, high=math.inf).holds(1e9)


def test_trajectories_are_deduplicated_and_the_oldest_dropped_first() -> None:
    buffer = ReplayBuffer[str](capacity=3)
    assert buffer.add([("a", "A"), ("b", "B"), ("a", "another A")]) == 2
    assert buffer.add([("c", "C"), ("d", "D")]) == 2
    assert list(buffer) == ["B", "C", "D"]
