"""Intervals of clustered means, compared with resamples by hand and with their coverage."""

from __future__ import annotations

import numpy as np
import pytest

from judges.statistics import clustered_mean, resampled


def test_two_clusters_have_three_resamples() -> None:
    """A = {1, 1, 1}, B = {0}: AA gives 1 and BB 0, a quarter each; AB gives 3/4. So the interval is from 0 to 1."""
    found = clustered_mean([1, 1, 1, 0], ["a", "a", "a", "b"], resamples=2000, seed=0)
    assert (found.value, found.low, found.high) == (0.75, 0.0, 1.0)


def test_what_cannot_differ_has_no_interval_and_says_why() -> None:
    assert clustered_mean([], [], resamples=100, seed=0).value is None
    assert clustered_mean([0, 1], ["a", "a"], resamples=100, seed=0).why_not == "one task alone"
    assert clustered_mean([1, 1], ["a", "b"], resamples=100, seed=0).why_not == "no resample differs"
    assert resampled(0.5, np.array([0.5, 0.5]), 2).low is None


def test_the_same_seed_gives_the_same_interval() -> None:
    values, tasks = [k / 7 for k in range(30)], [str(k) for k in range(30)]
    one, same, other = (clustered_mean(values, tasks, resamples=200, seed=seed) for seed in (3, 3, 4))
    assert one == same and one != other


@pytest.mark.parametrize(("clustered", "least", "most"), [(True, 0.87, 0.99), (False, 0.3, 0.8)])
def test_the_interval_holds_as_often_as_it_says_where_attempts_at_one_task_are_alike(
    clustered: bool, least: float, most: float
) -> None:
    """40 tasks that always or never succeed, 4 attempts each: as if attempts were independent, it is far too narrow."""
    random = np.random.default_rng(0)
    held = 0
    for _ in range(100):
        values = np.repeat(random.random(40) < 0.5, 4).astype(float)
        names = np.repeat(np.arange(40), 4) if clustered else np.arange(160)
        found = clustered_mean(values.tolist(), names.astype(str).tolist(), resamples=300, seed=0)
        assert found.low is not None and found.high is not None
        held += found.low <= 0.5 <= found.high
    assert least <= held / 100 <= most
