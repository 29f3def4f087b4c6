"""When milestones are done: P(milestone k done by step t), and how near that map is to a diagonal.

The paper (MiRA §6.2.4, Fig. 12) shows by eye that the map turns from a band over the first milestones to a diagonal:
the policy does one milestone after the other, along the episode. Here that is three numbers, by the run's rater:

- `diagonal`, 0 to 1: the mean over episodes of the share of milestones *done in order from the first*: of K milestones,
  the largest j such that 1 … j were each done, none before the one that precedes it, divided by K. 1 where every
  episode did all of them in order (two in one step count as in order), 0 where none did its first. It is a mean within
  episodes, so that a late milestone that only good episodes reach does not bend it.
- `order`, -1 to 1: Spearman's rank correlation of k with the mean step at which milestone k was done, over episodes
  that did it. It speaks of the order alone: a policy that only ever does milestones 1 and 2 of 5 can have 1.
- `all_done`: the share of episodes that had done all of their milestones at the end.
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
    """Episodes that have a k-th milestone."""
    done: Estimate
    """Share of them that did it, Wilson's interval."""
    mean_step: float | None
    """Over those that did it, steps taken before; 0: from the start. None where none did."""


class MilestoneProgress(Record):
    """The map, and what it says, over the episodes that have milestones."""

    traces: int
    left_out: dict[str, int]
    """Judged episodes whose trace says nothing of milestones, by reason."""
    heat: HeatMap
    """`heat.rows[k][t]`, of all those episodes."""
    milestones: tuple[Reached, ...]
    diagonal: Estimate
    """Interval: bootstrap over tasks."""
    order: float | None
    """None where fewer than two milestones were ever done, or all at the same mean step."""
    all_done: Estimate


def milestone_progress(
    observed: Sequence[Observed],
    tasks: Sequence[str],
    *,
    left_out: dict[str, int] | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> MilestoneProgress:
    """Of the episodes *observed*, each at the task instance of the same place in *tasks*."""
    everything = next(map_ for map_ in heat_maps(observed) if map_.group == "all")
    milestones = tuple(_reached(observed, k) for k in range(len(everything.rows)))
    shares = [in_order(one.reached) / len(one.reached) for one in observed]
    return MilestoneProgress(
        traces=len(observed),
        left_out=left_out or {},
        heat=everything,
        milestones=milestones,
        diagonal=clustered_mean(shares, tasks, resamples=resamples, seed=seed),
        order=_order(milestones),
        all_done=proportion(sum(all(one.z) for one in observed), len(observed)),
    )


def in_order(reached: Sequence[int | None]) -> int:
    """How many milestones, from the first on, were done and none before the one that precedes it."""
    steps = list(takewhile(lambda step: step is not None, reached))
    ordered = takewhile(lambda pair: pair[0] <= pair[1], pairwise(step for step in steps if step is not None))
    return min(len(steps), 1) + sum(1 for _ in ordered)


def _reached(observed: Sequence[Observed], k: int) -> Reached:
    having = [one.reached[k] for one in observed if len(one.reached) > k]
    steps = [step for step in having if step is not None]
    return Reached(
        k=k + 1,
        traces=len(having),
        done=proportion(len(steps), len(having)),
        mean_step=float(np.mean(steps)) if steps else None,
    )


def _order(milestones: Sequence[Reached]) -> float | None:
    done = [(one.k, one.mean_step) for one in milestones if one.mean_step is not None]
    steps = [step for _, step in done]
    if len(set(steps)) < 2:
        return None
    return round(rank_correlation([k for k, _ in done], steps), 12)  # 1 is 1, not a bit less
