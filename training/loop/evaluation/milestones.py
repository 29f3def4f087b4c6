"""Computes when milestones are done: P(milestone k done by step t), and how close that heat map is to a diagonal.

The paper (MiRA §6.2.4, Fig. 12) shows the heat map change from a band over the first milestones to a diagonal: the
policy does one milestone after the other. Here three numbers measure this, by the run's rater:

- `diagonal`, 0 to 1: the mean over episodes of the share of milestones *done in order from the first*: the largest j
  such that 1 … j were all done, none before its predecessor, divided by K. It is 1 if every episode did all milestones
  in order (two in one step count as in order), and 0 if none did its first. It is a mean within episodes, so late
  milestones that only good episodes do have no undue weight.
- `order`, -1 to 1: Spearman's rank correlation of k with the mean step at which milestone k was done, over episodes
  that did it. It measures the order only: a policy that only does milestones 1 and 2 of 5 can have 1.
- `all_done`: the share of episodes with all of their milestones done at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile

import numpy as np

from envs.core.record import Record
from judges.statistics import Estimate, clustered_mean, proportion, rank_correlation
from judges.subgoal_quality import HeatMap, heat_maps
from judges.trace_ratings import Observed


class Reached(Record):
    """How often, and when, the k-th milestone was done."""

    k: int
    """1-based."""
    traces: int
    """Number of episodes with a k-th milestone."""
    done: Estimate
    """Share of them that did it, with Wilson's interval."""
    mean_step: float | None
    """Mean number of steps before it was done, over episodes that did it; None without such episodes."""


class MilestoneProgress(Record):
    """The heat map and its metrics, over the episodes with milestones."""

    traces: int
    left_out: dict[str, int]
    """Judged episodes without milestones in their trace, by reason."""
    heat: HeatMap
    """`heat.rows[k][t]`, of all those episodes."""
    milestones: tuple[Reached, ...]
    diagonal: Estimate
    """Interval: bootstrap over tasks."""
    order: float | None
    """None if fewer than two milestones were ever done, or all at the same mean step."""
    all_done: Estimate


def milestone_progress(
    observed: Sequence[Observed],
    tasks: Sequence[str],
    *,
    left_out: dict[str, int] | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> MilestoneProgress:
    """Computes the metrics of the episodes *observed*; *tasks* has the task instance of each."""
    everything = next(map_ for map_ in heat_maps(observed) if map_.group == "all")
    milestones = tuple(_reached(observed, k) for k in range(len(everything.rows)))
    shares = [in_order(episode.reached) / len(episode.reached) for episode in observed]
    return MilestoneProgress(
        traces=len(observed),
        left_out=left_out or {},
        heat=everything,
        milestones=milestones,
        diagonal=clustered_mean(shares, tasks, resamples=resamples, seed=seed),
        order=_order(milestones),
        all_done=proportion(sum(all(episode.z) for episode in observed), len(observed)),
    )


def in_order(reached: Sequence[int | None]) -> int:
    """Number of consecutive milestones, from the first, that were done in order."""
    steps = list(takewhile(lambda step: step is not None, reached))
    ordered = takewhile(lambda pair: pair[0] <= pair[1], pairwise(step for step in steps if step is not None))
    return min(len(steps), 1) + sum(1 for _ in ordered)


def _reached(observed: Sequence[Observed], k: int) -> Reached:
    having = [episode.reached[k] for episode in observed if len(episode.reached) > k]
    steps = [step for step in having if step is not None]
    return Reached(
        k=k + 1,
        traces=len(having),
        done=proportion(len(steps), len(having)),
        mean_step=float(np.mean(steps)) if steps else None,
    )


def _order(milestones: Sequence[Reached]) -> float | None:
    done = [(milestone.k, milestone.mean_step) for milestone in milestones if milestone.mean_step is not None]
    steps = [step for _, step in done]
    if len(set(steps)) < 2:
        return None
    return round(rank_correlation([k for k, _ in done], steps), 12)  # removes rounding errors near 1
