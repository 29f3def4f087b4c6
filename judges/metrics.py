"""Precision, recall, F1, AUROC and τ of progress against success, each with its 95 % interval.

Precision and recall are proportions with Wilson's interval. The others have the interval of a stratified bootstrap.

All five depend only on the number of successes and failures at each progress score. So resamples are drawn as tables
of counts: a thousand of them take milliseconds for any number of traces.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judges.statistics import Estimate, percentiles, proportion
from judges.trace_ratings import Observed

_Counts = NDArray[np.int64]
_Floats = NDArray[np.float64]


class ScoreTable(NamedTuple):
    """Counts of traces by progress score."""

    scores: _Floats
    """Distinct, ascending; the last is 1, even if no trace has it."""
    won: _Counts
    """Successful traces with each score."""
    lost: _Counts

    @classmethod
    def of(cls, observed: Sequence[Observed]) -> ScoreTable:
        won = Counter(one.score for one in observed if one.success)
        lost = Counter(one.score for one in observed if not one.success)
        scores = sorted({*won, *lost, 1.0})
        return cls(
            np.array(scores, dtype=np.float64),
            np.array([won[s] for s in scores], dtype=np.int64),
            np.array([lost[s] for s in scores], dtype=np.int64),
        )


class _Statistics(NamedTuple):
    """One value per resample; NaN if it is not defined."""

    precision: _Floats
    recall: _Floats
    f1: _Floats
    auroc: _Floats
    tau: _Floats


_Name = Literal["precision", "recall", "f1", "auroc", "tau"]


def _statistics(won: _Counts, lost: _Counts) -> _Statistics:
    """The statistics of tables, one per row (resamples × scores); τ is τ-b."""
    done, false = won[:, -1].astype(np.float64), lost[:, -1].astype(np.float64)
    wins, losses = won.sum(axis=1), lost.sum(axis=1)
    below = np.cumsum(lost, axis=1) - lost
    ahead = (won * (below + 0.5 * lost)).sum(axis=1)
    n = wins + losses
    both = won + lost
    untied = n * (n - 1) / 2 - (both * (both - 1) / 2).sum(axis=1)
    pairs = (wins * losses).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        auroc = np.where(pairs > 0, ahead / pairs, np.nan)
        return _Statistics(
            precision=done / (done + false),
            recall=np.where(wins > 0, done / wins, np.nan),
            f1=2 * done / (done + false + wins),
            auroc=auroc,
            tau=np.where(untied > 0, pairs * (2 * auroc - 1) / np.sqrt(pairs * untied), np.nan),
        )


class Spread:
    """The statistics of a table, and of its resamples."""

    def __init__(self, table: ScoreTable, resamples: int, seed: int) -> None:
        self._table = table
        self._point = _statistics(table.won[None, :], table.lost[None, :])
        random = np.random.default_rng(seed)
        self._samples = _statistics(_redrawn(table.won, resamples, random), _redrawn(table.lost, resamples, random))

    def estimate(self, name: _Name) -> Estimate:
        value = float(getattr(self._point, name)[0])
        if np.isnan(value):
            return Estimate(value=None, why_not=self._undefined(name))
        if name in ("precision", "recall"):
            return self._share(name)
        samples: _Floats = getattr(self._samples, name)
        samples = samples[~np.isnan(samples)]
        if np.ptp(samples) == 0:
            return Estimate(value=value, why_not="no resample differs")
        low, high = percentiles(samples)
        return Estimate(value=value, low=low, high=high)

    def _share(self, name: Literal["precision", "recall"]) -> Estimate:
        """Wilson's interval: a bootstrap would give a proportion of 4 out of 4 an interval of width 0."""
        hits = int(self._table.won[-1])
        return proportion(hits, hits + int(self._table.lost[-1]) if name == "precision" else int(self._table.won.sum()))

    def _undefined(self, name: _Name) -> str:
        wins, losses = int(self._table.won.sum()), int(self._table.lost.sum())
        if wins + losses == 0:
            return "no trace with milestones that a checker judged"
        match name:
            case "precision":
                return "no trace had all milestones done"
            case "recall":
                return "no trace succeeded"
            case "f1":
                return "no trace succeeded and none had all milestones done"
            case "auroc" | "tau":
                if wins == 0 or losses == 0:
                    return f"every trace {'failed' if wins == 0 else 'succeeded'}"
                return "every trace made the same progress"


def _redrawn(counts: _Counts, resamples: int, random: np.random.Generator) -> _Counts:
    """Resamples of one class, as counts by score: drawing n traces with replacement is a multinomial draw."""
    total = int(counts.sum())
    if total == 0:
        return np.zeros((resamples, len(counts)), dtype=np.int64)
    return random.multinomial(total, counts / total, size=resamples)


def tau_p(table: ScoreTable) -> float | None:
    """The two-sided p-value of τ-b under independence, from its normal approximation with ties (Kendall 1970, §4.11),
    as `scipy.stats.kendalltau` computes it. None if τ is not defined."""
    both = table.won + table.lost
    classes = np.array([table.won.sum(), table.lost.sum()])
    if not classes.all() or np.count_nonzero(both) < 2:
        return None
    n = int(classes.sum())
    if n == 2:
        return 1.0  # without ties the distribution is exact: either order of two is as likely
    below = np.cumsum(table.lost) - table.lost
    above = table.lost.sum() - table.lost - below
    excess = int((table.won * (below - above)).sum())  # concordant pairs less discordant ones
    (x, x0, x1), (y, y0, y1) = _ties(both), _ties(classes)
    m = n * (n - 1)
    variance = (m * (2 * n + 5) - x1 - y1) / 18 + 2 * x * y / m + x0 * y0 / (9 * m * (n - 2))
    return math.erfc(abs(excess) / math.sqrt(2 * variance))


def _ties(counts: _Counts) -> tuple[int, int, int]:
    """For groups of equal values: the number of pairs, and the two sums over t tied values of t(t - 1)(t - 2) and of
    t(t - 1)(2t + 5)."""
    pairs = counts * (counts - 1)
    return int(pairs.sum()) // 2, int((pairs * (counts - 2)).sum()), int((pairs * (2 * counts + 5)).sum())
