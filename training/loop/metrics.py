"""Metrics of a finished phase: `metrics.json`, which `mira train show` draws as curves."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from pydantic import AliasChoices, Field

from envs.core.record import Record
from judges.statistics import Interval, rank_correlation, wilson
from training.data.trajectories import Trajectory
from training.loop.data import ReplayCounts
from training.mira.group_advantages import GroupCounts
from training.rollouts.pool import find_runs


class PlayedRun(Record):
    """Episodes of one run."""

    episodes: int
    successes: int
    broken: int
    """Episodes without a verdict on the policy: the environment or a model failed, or nobody judged."""
    steps: float
    """Mean over judged episodes."""
    progress: float | None
    """Mean share of milestones done at the end; None without milestones."""
    failures: dict[str, int]
    """Failed episodes by category."""
    degraded: int = 0
    """Judged episodes in which planner or rater failed at least once."""

    @property
    def judged(self) -> int:
        """Number of judged episodes."""
        return self.episodes - self.broken

    @property
    def rate(self) -> float:
        """Success rate of judged episodes; 0 without any."""
        return self.successes / max(1, self.judged)

    @property
    def interval(self) -> Interval:
        return wilson(self.successes, self.judged)


class CriticScores(Record):
    """Errors of a critic on unseen trajectories: this phase's, before its stage; with `value.folds` each task's by a
    critic of other tasks."""

    rows: int
    absolute_error: float
    """Mean |predicted − true|, in [0, 1]."""
    spearman: float | None
    """Rank correlation of predicted and true; None where one of them does not vary."""


class LossChange(Record):
    """A stage's loss at its beginning and end: the means over the first and last quarter of its steps, before each
    update. Single steps would depend more on their rows than on training."""

    first: float
    last: float
    """If it is not below the first, the learning rate is too high for these rows or there are too few epochs."""


class GroupMetrics(Record):
    """A phase of group-relative training."""

    counts: GroupCounts
    rounds: int = 1
    """Rounds of rollouts, the first included."""
    kl: float | None = None
    """Mean KL divergence per token from the start, during the update; None without a KL penalty."""
    clipped: float | None = None
    """Share of tokens whose gradient the clip removed, mean over the logged steps."""
    log_ratio: float | None = None
    """Mean `log π − log π_old` per token, over the logged steps."""
    unreadable_rows: int = 0
    """The actor's rows of answers without an action."""
    tokens: int = 0
    """Tokens of the actor's rows over all epochs, prompts included; shared prefixes count in every row."""
    browser_seconds: float = 0.0
    """Seconds of observing and acting, summed over episodes."""
    model_seconds: float = 0.0
    """Seconds of the policy's calls, summed over episodes."""

    @property
    def browser_share(self) -> float:
        """Share of the episodes' time that was spent in the browser, in [0, 1]."""
        return self.browser_seconds / max(1e-9, self.browser_seconds + self.model_seconds)


class PhaseMetrics(Record):
    """One phase."""

    phase: int
    evaluation: PlayedRun | None = None
    rollouts: PlayedRun | None = None
    trajectories: int = 0
    rows: int = 0
    actor_rows: int = 0
    nonfinite_rows: int = 0
    """Rows that were left out because their advantage is NaN or infinite."""
    unreadable: float | None = None
    """Share of the policy's answers in the phase's own trajectories that hold no action, in [0, 1]; a share that grows
    is a sign of policy collapse. None without answers."""
    replayed: ReplayCounts = ReplayCounts()
    potential: CriticScores | None = None
    value: CriticScores | None = None
    advantage_on_successes: float | None = None
    """Mean; below 0 the actor unlearns successful actions."""
    advantage_on_failures: float | None = None
    actor_loss: LossChange | None = None
    """None if no row was learned from."""
    perplexity: float | None = None
    """Perplexity of the phase's own actions under the policy that sampled them."""
    logprob_difference: float | None = Field(
        default=None, validation_alias=AliasChoices("logprob_difference", "engines_apart")
    )
    """|log π as sampled - log π as scored for training| of the phase's own actions, in nats per token."""
    groups: GroupMetrics | None = None
    """None without group-relative advantages."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Wall seconds of each part, the evaluation included, summed over the processes of a resumed phase."""


def unreadable_share(trajectories: Sequence[Trajectory]) -> float | None:
    """Share of the answers that hold no action; None without answers."""
    unreadable = sum(each.unreadable for each in trajectories)
    answers = unreadable + sum(len(each.decisions) for each in trajectories)
    return unreadable / answers if answers else None


def played_in(*places: Path) -> PlayedRun:
    """Counts the episodes of finished runs, or of the runs of a cluster."""
    runs = [run for place in places for run in find_runs(place)]
    rows = [row for run in runs for row in run.finished(run.read_manifest().jobs()).values()]
    judged = [row for row in rows if row.outcome in ("success", "failure")]
    failures: dict[str, int] = {}
    for row in judged:
        if row.outcome == "failure":
            name = row.failure.category if row.failure is not None else "not analyzed"
            failures[name] = failures.get(name, 0) + 1
    reached = [sum(row.z) / len(row.z) for row in judged if row.z]
    return PlayedRun(
        episodes=len(rows),
        successes=sum(row.outcome == "success" for row in judged),
        broken=len(rows) - len(judged),
        steps=fmean(row.totals.steps for row in judged) if judged else 0.0,
        progress=fmean(reached) if reached else None,
        failures=dict(sorted(failures.items())),
        degraded=sum(bool(row.degraded) for row in judged),
    )


def loss_change(stage: Path) -> LossChange | None:
    """Reads the loss from the log of the stage in folder *stage*; None if it made no step."""
    losses = [line["loss"] for line in json.loads((stage / "log.json").read_text(encoding="utf-8")) if "loss" in line]
    quarter = max(1, len(losses) // 4)
    return LossChange(first=fmean(losses[:quarter]), last=fmean(losses[-quarter:])) if losses else None


def critic_scores(predicted: Sequence[float], true: Sequence[float]) -> CriticScores | None:
    """Compares a critic's predictions with the targets; None without rows."""
    if not predicted:
        return None
    spearman = rank_correlation(predicted, true)
    return CriticScores(
        rows=len(predicted),
        absolute_error=fmean(abs(value - target) for value, target in zip(predicted, true, strict=True)),
        spearman=None if math.isnan(spearman) else spearman,
    )
