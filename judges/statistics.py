"""Estimates with confidence intervals: proportions (Wilson) and bootstrap statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from envs.core.record import Record

Z_95: Final = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""
RESAMPLES: Final = 2_000
"""Bootstrap resamples of an interval, unless a caller asks for another number."""

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """The 95 % interval of an estimate."""

    low: float
    high: float


class Estimate(Record):
    """A number with its 95 % interval; either may be undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None
    why_not: str = ""
    """Why `value`, or else its interval, is None; empty if both are defined."""

    def __str__(self) -> str:
        if self.value is None:
            return f"not defined: {self.why_not}"
        if self.low is None or self.high is None:
            return f"{self.value:.4f} (no interval: {self.why_not})"
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


def wilson(successes: int, trials: int) -> Interval:
    """Wilson's 95 % score interval of a proportion; (0, 1) for 0 trials.

    Raises ValueError unless 0 <= *successes* <= *trials*.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials")
    if trials == 0:
        return Interval(0.0, 1.0)
    share, square = successes / trials, Z_95**2 / trials
    centre = (share + square / 2) / (1 + square)
    half = Z_95 * math.sqrt(share * (1 - share) / trials + square / (4 * trials)) / (1 + square)
    # At the ends the interval ends exactly, which rounding would miss.
    low = 0.0 if successes == 0 else centre - half
    return Interval(low, 1.0 if successes == trials else centre + half)


def proportion(successes: int, trials: int) -> Estimate:
    """The proportion with its Wilson interval; undefined for 0 trials."""
    if trials == 0:
        return Estimate(value=None, why_not="nothing to count")
    low, high = wilson(successes, trials)
    return Estimate(value=successes / trials, low=low, high=high)


def percentiles(samples: Floats) -> Interval:
    """The percentile bootstrap's 95 % interval; the samples hold no NaN and are not empty."""
    low, high = np.percentile(samples, (2.5, 97.5))
    return Interval(float(low), float(high))


def resampled(value: float, samples: Floats, units: int) -> Estimate:
    """*value* with the interval of its *samples*, drawn from *units* tasks; no interval if all samples are equal."""
    if np.ptp(samples) == 0:
        return Estimate(value=value, why_not="no resample differs" if units > 1 else "one task alone")
    low, high = percentiles(samples)
    return Estimate(value=value, low=low, high=high)


def clustered_mean(values: Sequence[float], clusters: Sequence[str], *, resamples: int, seed: int) -> Estimate:
    """The mean of *values* with the interval of a percentile bootstrap over whole *clusters*.

    Values of one cluster (attempts at one task) are drawn together, because they are not independent. Undefined
    without values. The same seed gives the same numbers.
    """
    if not values:
        return Estimate(value=None, why_not="nothing to average")
    _, places = np.unique(np.asarray(clusters), return_inverse=True)
    sums, sizes = np.bincount(places, weights=np.asarray(values, dtype=np.float64)), np.bincount(places)
    drawn = np.random.default_rng(seed).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=resamples)
    return resampled(float(np.mean(values)), (drawn @ sums) / (drawn @ sizes), len(sums))


def average_ranks(values: Sequence[float]) -> Floats:
    """Ranks from 1; equal values get the mean of their ranks."""
    _, places, counts = np.unique(np.asarray(values, np.float64), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[places]


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's ρ: Pearson's correlation of the ranks. NaN if one of them is constant."""
    if len(set(one)) < 2 or len(set(other)) < 2:
        return math.nan
    return float(np.corrcoef(average_ranks(one), average_ranks(other))[0, 1])
