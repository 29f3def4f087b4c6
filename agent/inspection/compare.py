"""Compares two runs on common tasks: success, pass@k, failures, steps, tokens, seconds and cost.

Only headers and footers are parsed, so thousands of episodes take seconds. A trace that was edited after it was written
is named and not counted. Broken, unjudged and unfinished episodes say nothing about the policy: they are counted and
named, but excluded from rates and means.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from agent.inspection.expert_steps import Assisted, ExpertSteps, assisted
from agent.run.discover_traces import EpisodeFile
from envs.core.errors import TraceError
from envs.core.plain_values import flattened
from envs.core.record import Record
from envs.core.trace import Footer, Header
from envs.core.trace_store import check_chain, check_unedited, read_summary
from judges.statistics import RESAMPLES, Estimate, proportion, resampled

PASS_AT: Final = (1, 2, 4, 8)
_EXACT_TASKS: Final = 16
"""Maximum number of tasks that differ for which all sign flips are enumerated; for more, they are sampled."""

Measure = Literal["steps", "tokens", "seconds", "cost_usd"]
MEASURES: Final[tuple[Measure, ...]] = ("steps", "tokens", "seconds", "cost_usd")


class PassAt(Record):
    """The unbiased estimate of P(at least one of k attempts succeeds), averaged over tasks."""

    k: int
    value: float
    tasks: int
    """Number of tasks with at least k judged attempts; others are excluded from the mean."""


class Arm(Record):
    """One of the two runs."""

    policy: str
    episodes: int
    tasks: int
    outcomes: dict[str, int]
    """Episodes by outcome, `unfinished` among them."""
    success: Estimate
    """Success rate of judged episodes with Wilson's interval; attempts at one task count as independent."""
    pass_at: tuple[PassAt, ...]
    failures: dict[str, int]
    """Failed episodes by category."""
    degraded: int
    """Judged episodes in which planner or rater failed at least once; they are part of all rates."""
    expert: ExpertSteps | None = None
    """Steps of an expert in the judged episodes; None without an expert."""
    damaged: tuple[str, ...]


class Paired(Record):
    """A test of the null hypothesis "no difference in success" on the tasks judged in both runs."""

    method: Literal["McNemar, exact", "sign flips over tasks, exact", "sign flips over tasks, sampled", "none"]
    tasks: int
    only_a: int
    """Number of tasks on which A was better."""
    only_b: int
    p: float | None
    """Two-sided; None without common tasks."""


class Difference(Record):
    """B minus A: the difference of means over common tasks, each task weighted equally."""

    a: float
    b: float
    change: Estimate
    """With a percentile bootstrap interval over paired tasks."""


class Comparison(Record):
    """The comparison of run B with run A."""

    a: Arm
    b: Arm
    paired: Paired
    success: Difference | None
    """Difference of success rates over common tasks; None without common tasks."""
    spent: dict[Measure, Difference]
    only_in_a: tuple[str, ...]
    """Tasks that were not played or not judged in B."""
    only_in_b: tuple[str, ...]
    unlike: dict[str, tuple[Any, Any]]
    """Settings other than the policy that differ, and that may cause the difference."""


class _Episode(NamedTuple):
    """A judged episode."""

    success: bool
    spent: tuple[float, ...]
    """In the order of MEASURES."""


@dataclass(slots=True)
class _Read:
    """Counts from the headers and footers of one run."""

    policies: Counter[str]
    outcomes: Counter[str]
    failures: Counter[str]
    seen: set[str]
    degraded: int
    judged: defaultdict[str, list[_Episode]]
    damaged: list[str]
    config: dict[str, Any]
    assisted: list[Assisted | None]


def compare(a: Sequence[EpisodeFile], b: Sequence[EpisodeFile], *, seed: int = 0) -> Comparison:
    """Compares *b* with *a*; the same seed gives the same numbers. Unreadable traces are named in their arm."""
    first, second = _read(a), _read(b)
    common = sorted(first.judged.keys() & second.judged.keys())
    draws = np.random.default_rng(seed)
    picks = draws.integers(0, len(common), size=(RESAMPLES, len(common))) if common else None
    return Comparison(
        a=_arm(first, len(a)),
        b=_arm(second, len(b)),
        paired=_paired(first.judged, second.judged, draws),
        success=_difference([_rate(first.judged[t]) for t in common], [_rate(second.judged[t]) for t in common], picks),
        spent={
            measure: difference
            for place, measure in enumerate(MEASURES)
            if (
                difference := _difference(
                    [_mean(first.judged[t], place) for t in common],
                    [_mean(second.judged[t], place) for t in common],
                    picks,
                )
            )
            is not None
        },
        only_in_a=tuple(sorted(first.judged.keys() - second.judged.keys())),
        only_in_b=tuple(sorted(second.judged.keys() - first.judged.keys())),
        unlike=_unlike(first.config, second.config),
    )


def pass_at(k: int, attempts: int, successes: int) -> float:
    """1 - C(n-c, k)/C(n, k): unbiased estimate of P(one of k succeeds), c of n attempts succeeded (Chen et al. 2021).

    Raises ValueError unless 1 <= *k* <= *attempts* and 0 <= *successes* <= *attempts*.
    """
    if not (1 <= k <= attempts and 0 <= successes <= attempts):
        raise ValueError(f"pass@{k} of {successes} successes in {attempts} attempts")
    return 1.0 - comb(attempts - successes, k) / comb(attempts, k)


def mcnemar_p(only_a: int, only_b: int) -> float:
    """The exact two-sided p of McNemar's test on the discordant pairs."""
    n, least = only_a + only_b, min(only_a, only_b)
    return min(1.0, 2 * sum(comb(n, i) for i in range(least + 1)) / 2**n)


def _read(files: Iterable[EpisodeFile]) -> _Read:
    read = _Read(Counter(), Counter(), Counter(), set(), 0, defaultdict(list), [], {}, [])
    for file in files:
        try:
            header, footer = read_summary(file.path)
            check_unedited(file.path, check_chain(file.path))
            policy = _policy(file, header, footer)
        except TraceError as error:
            read.damaged.append(str(error))
            continue
        read.seen.add(header.task.id)
        read.policies[policy] += 1
        read.outcomes[footer.outcome if footer else "unfinished"] += 1
        read.config = read.config or (footer and footer.config) or header.config
        if footer is None or footer.outcome not in ("success", "failure"):
            continue
        read.degraded += bool(footer.degraded)
        read.assisted.append(assisted(header, footer))
        read.judged[header.task.id].append(_Episode(footer.outcome == "success", _spent(footer)))
        if footer.outcome == "failure":
            read.failures[footer.failure.category if footer.failure else "not analyzed"] += 1
    return read


def _policy(file: EpisodeFile, header: Header, footer: Footer | None) -> str:
    """The policy of an episode. Only a trace whose configuration a resume changed is read completely."""
    changed = footer is not None and footer.config is not None
    return file.read().policy if changed else str(header.config.get("policy", "unknown"))


def _spent(footer: Footer) -> tuple[float, ...]:
    totals = footer.totals
    return (totals.steps, totals.tokens, totals.seconds, totals.cost_usd)


def _arm(read: _Read, episodes: int) -> Arm:
    wins, judged = read.outcomes["success"], read.outcomes["success"] + read.outcomes["failure"]
    passes: list[PassAt] = []
    for k in PASS_AT:
        enough = [attempts for attempts in read.judged.values() if len(attempts) >= k]
        if enough:
            values = [pass_at(k, len(attempts), sum(e.success for e in attempts)) for attempts in enough]
            passes.append(PassAt(k=k, value=sum(values) / len(values), tasks=len(enough)))
    return Arm(
        policy=", ".join(read.policies),
        episodes=episodes,
        tasks=len(read.seen),
        outcomes=dict(read.outcomes),
        success=proportion(wins, judged),
        pass_at=tuple(passes),
        failures=dict(read.failures),
        degraded=read.degraded,
        expert=ExpertSteps.of(read.assisted),
        damaged=tuple(read.damaged),
    )


_Judged = Mapping[str, Sequence[_Episode]]


def _paired(a: _Judged, b: _Judged, random: np.random.Generator) -> Paired:
    """McNemar's test if each run has one attempt per task, else a sign-flip test over tasks' mean success."""
    common = sorted(a.keys() & b.keys())
    gains = np.array([_rate(b[task]) - _rate(a[task]) for task in common])
    only_a, only_b = int((gains < 0).sum()), int((gains > 0).sum())
    if not common:
        return Paired(method="none", tasks=0, only_a=0, only_b=0, p=None)
    if all(len(a[task]) == len(b[task]) == 1 for task in common):
        p, method = mcnemar_p(only_a, only_b), "McNemar, exact"
    else:
        moved = gains[gains != 0]
        exact = len(moved) <= _EXACT_TASKS
        method = "sign flips over tasks, exact" if exact else "sign flips over tasks, sampled"
        p = _exact_flips(moved) if exact else _sampled_flips(moved, random)
    return Paired(method=method, tasks=len(common), only_a=only_a, only_b=only_b, p=p)


def _exact_flips(gains: np.ndarray) -> float:
    """Share of all sign patterns whose sum is at least as far from 0 as the observed one."""
    sums = np.zeros(1)
    for gain in gains:
        sums = np.concatenate([sums + gain, sums - gain])
    return float((np.abs(sums) >= abs(gains.sum()) - 1e-9).mean())


def _sampled_flips(gains: np.ndarray, random: np.random.Generator) -> float:
    """The same share estimated from random patterns; the observed pattern counts as one, so p is never 0."""
    as_far = 0
    for _ in range(RESAMPLES):
        as_far += abs((gains * random.choice((-1.0, 1.0), size=len(gains))).sum()) >= abs(gains.sum()) - 1e-9
    return (1 + as_far) / (1 + RESAMPLES)


def _difference(a: Sequence[float], b: Sequence[float], picks: np.ndarray | None) -> Difference | None:
    if picks is None:
        return None
    change = np.array(b) - np.array(a)
    means = change[picks].mean(axis=1)
    spread = resampled(float(change.mean()), means, len(a))
    return Difference(a=float(np.mean(a)), b=float(np.mean(b)), change=spread)


def _rate(episodes: Sequence[_Episode]) -> float:
    return sum(episode.success for episode in episodes) / len(episodes)


def _mean(episodes: Sequence[_Episode], place: int) -> float:
    return sum(episode.spent[place] for episode in episodes) / len(episodes)


def _unlike(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Settings that differ, by dotted name, between the first episodes of both runs."""
    flat_a, flat_b = flattened(a), flattened(b)
    return {
        name: (flat_a.get(name), flat_b.get(name))
        for name in sorted(flat_a.keys() | flat_b.keys())
        if name != "policy" and flat_a.get(name) != flat_b.get(name)
    }
