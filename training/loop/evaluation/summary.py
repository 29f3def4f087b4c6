"""What the episodes of a policy say: success by group, pass@k, failures, what an episode costs, milestones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Final, Literal

from agent.inspection.compare import PASS_AT, pass_at
from envs.core.record import Record
from judges.statistics import Estimate, clustered_mean, proportion
from training.loop.evaluation.milestones import MilestoneProgress, milestone_progress
from training.loop.evaluation.reading import NOT_ANALYZED, PlayedEpisode, Reading

Spending = Literal["steps", "tokens", "seconds"]
SPENDINGS: Final[Mapping[Spending, Callable[[PlayedEpisode], float]]] = {
    "steps": lambda one: one.steps,
    "tokens": lambda one: one.tokens,
    "seconds": lambda one: one.seconds,
}
FAILURES: Final = ("stop_at_wrong_page", "stuck_midway", "no_reasonable_attempt", "other", NOT_ANALYZED)
"""Categories of the MiRA paper, §4, in the order in which they are listed."""


class GroupRate(Record):
    """Success of the episodes that have something in common."""

    name: str
    """`-` where the trace does not name it."""
    judged: int
    successes: int
    success: Estimate
    """Of judged episodes, with Wilson's interval: attempts at one task count as independent."""
    broken: int
    """The world or a model failed: in no rate."""
    unjudged: int


class PassRate(Record):
    """P(at least one of k attempts succeeds), averaged over task instances."""

    k: int
    value: Estimate
    """Interval: bootstrap over task instances."""
    tasks: int
    """Instances with at least k judged attempts: those that are averaged."""
    too_few: int
    """Instances with fewer."""


class FailureRate(Record):
    """How many of the failed episodes failed in this way."""

    category: str
    episodes: int
    share: Estimate
    """Of failed episodes; not defined where none failed."""
    of_judged: Estimate
    """Of judged episodes: falls when the policy gets better, where `share` need not."""


class Spent(Record):
    """What a judged episode took."""

    mean: Estimate
    """Interval: bootstrap over task instances."""
    median: float | None
    """None where no episode was judged."""


class Evaluation(Record):
    """All of it."""

    policies: tuple[str, ...]
    episodes: int
    """That have ended."""
    tasks: int
    """Task instances among them."""
    outcomes: dict[str, int]
    """Ended episodes by outcome."""
    unfinished: int
    damaged: tuple[str, ...]
    total: GroupRate
    by_category: tuple[GroupRate, ...]
    by_split: tuple[GroupRate, ...]
    """None where no suite has splits."""
    by_task: tuple[GroupRate, ...]
    """Tasks without their seeds."""
    pass_at: tuple[PassRate, ...]
    failures: tuple[FailureRate, ...]
    spent: dict[Spending, Spent]
    milestones: MilestoneProgress


def evaluate(reading: Reading, *, ks: Sequence[int] = PASS_AT, resamples: int = 2000, seed: int = 0) -> Evaluation:
    """Of everything that was read, together; the same seed gives the same numbers."""
    played = reading.played
    judged = [one for one in played if one.judged]
    seen = [(one.observed, one.task.id) for one in judged if one.observed is not None]
    return Evaluation(
        policies=tuple(dict.fromkeys(one.policy for one in played)),
        episodes=len(played),
        tasks=len({one.task.id for one in played}),
        outcomes=dict(Counter(one.outcome for one in played)),
        unfinished=reading.unfinished,
        damaged=reading.damaged,
        total=_rate("all", played),
        by_category=_rates(played, lambda one: one.category),
        by_split=_rates(played, lambda one: one.split) if any(one.split for one in played) else (),
        by_task=_rates(played, lambda one: one.template),
        pass_at=tuple(pass_rate(judged, k, resamples=resamples, seed=seed) for k in ks),
        failures=tuple(_failures(judged)),
        spent={name: _spent(judged, what, resamples, seed) for name, what in SPENDINGS.items()},
        milestones=milestone_progress(
            [observed for observed, _ in seen],
            [task for _, task in seen],
            left_out=dict(reading.no_milestones),
            resamples=resamples,
            seed=seed,
        ),
    )


def pass_rate(judged: Iterable[PlayedEpisode], k: int, *, resamples: int = 2000, seed: int = 0) -> PassRate:
    """1 - C(n-c, k)/C(n, k) for each task instance with n >= *k* judged attempts of which c succeeded, averaged."""
    attempts: defaultdict[str, list[bool]] = defaultdict(list)
    for one in judged:
        attempts[one.task.id].append(one.success)
    enough = {task: won for task, won in attempts.items() if len(won) >= k}
    values = [pass_at(k, len(won), sum(won)) for won in enough.values()]
    value = clustered_mean(values, list(enough), resamples=resamples, seed=seed)
    if not enough:
        value = Estimate(value=None, why_not=f"no task has {k} attempts")
    return PassRate(k=k, value=value, tasks=len(enough), too_few=len(attempts) - len(enough))


def _rates(played: Iterable[PlayedEpisode], key: Callable[[PlayedEpisode], str]) -> tuple[GroupRate, ...]:
    groups: defaultdict[str, list[PlayedEpisode]] = defaultdict(list)
    for one in played:
        groups[key(one) or "-"].append(one)
    return tuple(_rate(name, groups[name]) for name in sorted(groups))


def _rate(name: str, members: Sequence[PlayedEpisode]) -> GroupRate:
    outcomes = Counter(one.outcome for one in members)
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
    counts = Counter(one.failure for one in judged if not one.success)
    for category in FAILURES:
        if counts[category] or category != NOT_ANALYZED:
            yield FailureRate(
                category=category,
                episodes=counts[category],
                share=proportion(counts[category], counts.total()),
                of_judged=proportion(counts[category], len(judged)),
            )


def _spent(judged: Sequence[PlayedEpisode], what: Callable[[PlayedEpisode], float], resamples: int, seed: int) -> Spent:
    values = [what(one) for one in judged]
    tasks = [one.task.id for one in judged]
    return Spent(
        mean=clustered_mean(values, tasks, resamples=resamples, seed=seed), median=median(values) if values else None
    )
