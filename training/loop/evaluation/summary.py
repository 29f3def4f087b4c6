"""Summarizes a policy's episodes: success by group, pass@k, failures, cost per episode, milestones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Final, Literal

from agent.inspection.compare import PASS_AT, pass_at
from agent.inspection.expert_steps import ExpertSteps
from envs.core.record import Record
from judges.statistics import Estimate, clustered_mean, proportion
from training.loop.evaluation.milestones import MilestoneProgress, milestone_progress
from training.loop.evaluation.reading import NOT_ANALYZED, PlayedEpisode, Reading

Spending = Literal["steps", "tokens", "seconds"]
SPENDINGS: Final[Mapping[Spending, Callable[[PlayedEpisode], float]]] = {
    "steps": lambda episode: episode.steps,
    "tokens": lambda episode: episode.tokens,
    "seconds": lambda episode: episode.seconds,
}
FAILURES: Final = ("stop_at_wrong_page", "stuck_midway", "no_reasonable_attempt", "other", NOT_ANALYZED)
"""Categories of the MiRA paper, §4, in the order in which they are listed."""


class GroupRate(Record):
    """Success rate of a group of episodes."""

    name: str
    """Name of the group; `-` if the trace has none."""
    judged: int
    successes: int
    success: Estimate
    """Rate of judged episodes with Wilson's interval; attempts at one task count as independent."""
    broken: int
    """The environment or a model failed: part of no rate."""
    unjudged: int


class PassRate(Record):
    """P(at least one of k attempts succeeds), averaged over task instances."""

    k: int
    value: Estimate
    """Interval: bootstrap over task instances."""
    tasks: int
    """Instances with at least k judged attempts, which are averaged."""
    too_few: int
    """Instances with fewer attempts."""


class FailureRate(Record):
    """Number and rate of failed episodes of one category."""

    category: str
    episodes: int
    share: Estimate
    """Share of failed episodes; undefined without any."""
    of_judged: Estimate
    """Share of judged episodes: it falls when the policy improves, but `share` may not."""


class Spent(Record):
    """The cost of a judged episode in steps, tokens or seconds."""

    mean: Estimate
    """Interval: bootstrap over task instances."""
    median: float | None
    """None without judged episodes."""


class Evaluation(Record):
    """All metrics of a policy."""

    policies: tuple[str, ...]
    episodes: int
    """Number of finished episodes."""
    tasks: int
    """Number of their task instances."""
    outcomes: dict[str, int]
    """Finished episodes by outcome."""
    unfinished: int
    degraded: int
    """Judged episodes in which planner or rater failed at least once; they are part of all rates."""
    expert: ExpertSteps | None = None
    """Steps of an expert in the judged episodes; None without an expert."""
    damaged: tuple[str, ...]
    total: GroupRate
    by_category: tuple[GroupRate, ...]
    by_split: tuple[GroupRate, ...]
    """Empty for suites without splits."""
    by_task: tuple[GroupRate, ...]
    """By `suite/name`, over all seeds."""
    pass_at: tuple[PassRate, ...]
    failures: tuple[FailureRate, ...]
    spent: dict[Spending, Spent]
    milestones: MilestoneProgress


def evaluate(reading: Reading, *, ks: Sequence[int] = PASS_AT, resamples: int = 2000, seed: int = 0) -> Evaluation:
    """Computes all metrics of the episodes that were read. Equal seeds give equal numbers."""
    played = reading.played
    judged = [episode for episode in played if episode.judged]
    seen = [(episode.observed, episode.task.id) for episode in judged if episode.observed is not None]
    return Evaluation(
        policies=tuple(dict.fromkeys(episode.policy for episode in played)),
        episodes=len(played),
        tasks=len({episode.task.id for episode in played}),
        outcomes=dict(Counter(episode.outcome for episode in played)),
        unfinished=reading.unfinished,
        degraded=sum(episode.degraded for episode in judged),
        expert=ExpertSteps.of(episode.assisted for episode in judged),
        damaged=reading.damaged,
        total=_rate("all", played),
        by_category=_rates(played, lambda episode: episode.category),
        by_split=_rates(played, lambda episode: episode.split) if any(episode.split for episode in played) else (),
        by_task=_rates(played, lambda episode: episode.template),
        pass_at=tuple(pass_rate(judged, k, resamples=resamples, seed=seed) for k in ks),
        failures=tuple(_failures(judged)),
        spent={name: _spent(judged, cost, resamples, seed) for name, cost in SPENDINGS.items()},
        milestones=milestone_progress(
            [observed for observed, _ in seen],
            [task for _, task in seen],
            left_out=dict(reading.no_milestones),
            resamples=resamples,
            seed=seed,
        ),
    )


def pass_rate(judged: Iterable[PlayedEpisode], k: int, *, resamples: int = 2000, seed: int = 0) -> PassRate:
    """pass@k: the mean of 1 - C(n-c, k)/C(n, k) over task instances with n >= *k* judged attempts, c successful."""
    attempts: defaultdict[str, list[bool]] = defaultdict(list)
    for episode in judged:
        attempts[episode.task.id].append(episode.success)
    enough = {task: outcomes for task, outcomes in attempts.items() if len(outcomes) >= k}
    values = [pass_at(k, len(outcomes), sum(outcomes)) for outcomes in enough.values()]
    value = clustered_mean(values, list(enough), resamples=resamples, seed=seed)
    if not enough:
        value = Estimate(value=None, why_not=f"no task has {k} attempts")
    return PassRate(k=k, value=value, tasks=len(enough), too_few=len(attempts) - len(enough))


def _rates(played: Iterable[PlayedEpisode], key: Callable[[PlayedEpisode], str]) -> tuple[GroupRate, ...]:
    groups: defaultdict[str, list[PlayedEpisode]] = defaultdict(list)
    for episode in played:
        groups[key(episode) or "-"].append(episode)
    return tuple(_rate(name, groups[name]) for name in sorted(groups))


def _rate(name: str, members: Sequence[PlayedEpisode]) -> GroupRate:
    outcomes = Counter(member.outcome for member in members)
    judged = outcomes["success"] + outcomes["failure"]
    return GroupRate(
        name=name,
        judged=judged,
        successes=outcomes["success"],
        success=proportion(outcomes["success"], judged),
        broken=outcomes["broken"],
        unjudged=outcomes["unjudged"],
    )


def _failures(judged: Sequence[PlayedEpisode]) -> Iterable[FailureRate]:
    counts = Counter(episode.failure for episode in judged if not episode.success)
    for category in FAILURES:
        if counts[category] or category != NOT_ANALYZED:
            yield FailureRate(
                category=category,
                episodes=counts[category],
                share=proportion(counts[category], counts.total()),
                of_judged=proportion(counts[category], len(judged)),
            )


def _spent(judged: Sequence[PlayedEpisode], cost: Callable[[PlayedEpisode], float], resamples: int, seed: int) -> Spent:
    values = [cost(episode) for episode in judged]
    tasks = [episode.task.id for episode in judged]
    return Spent(
        mean=clustered_mean(values, tasks, resamples=resamples, seed=seed), median=median(values) if values else None
    )
