"""What is known of a phase when it has ended: `metrics.json`, and the curves of `mira train show`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from pydantic import Field

from envs.core.record import Record
from judges.statistics import Interval, rank_correlation, wilson
from training.loop.data import ReplayCounts
from training.rollouts.pool import runs_below


class PlayedRun(Record):
    """Episodes of one run."""

    episodes: int
    successes: int
    broken: int
    """Nothing is known of the policy: the world or a model failed, or nobody judged."""
    steps: float
    """Mean, of the judged ones."""
    progress: float | None
    """Mean share of milestones reached at the end; None without milestones."""
    failures: dict[str, int]
    """By category."""

    @property
    def judged(self) -> int:
        """Those that say something about the policy."""
        return self.episodes - self.broken

    @property
    def rate(self) -> float:
        """Successes of the judged ones; 0 where none is."""
        return self.successes / max(1, self.judged)

    @property
    def interval(self) -> Interval:
        return wilson(self.successes, self.judged)


class CriticScores(Record):
    """A critic on trajectories that it has not learned from: this phase's, before its stage; with
    `value.folds` each task's by a critic of other tasks."""

    rows: int
    absolute_error: float
    """Mean |said − true|, in [0, 1]."""
    spearman: float | None
    """Rank correlation of said and true; None where one of them does not vary."""


class LossChange(Record):
    """A stage's loss while it ran, each the mean over a quarter of its steps, on rows about to be learned from. Over
    fewer rows which of them it was counts for more than what was learned."""

    first: float
    last: float
    """Not below the first: the rate is too high for these rows, or there are too few epochs."""


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
    replayed: ReplayCounts = ReplayCounts()
    potential: CriticScores | None = None
    value: CriticScores | None = None
    advantage_on_successes: float | None = None
    """Mean; below 0 the actor unlearns what worked."""
    advantage_on_failures: float | None = None
    actor_loss: LossChange | None = None
    """None where nothing was learned from."""
    perplexity: float | None = None
    """Of the phase's own actions under the policy that took them."""
    engines_apart: float | None = None
    """|log π as sampled - log π as scored for training| of the phase's own actions, nats a token."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Wall seconds of each part that this process did."""


def played_in(run: Path) -> PlayedRun:
    """Counts of a finished run, or of the runs of a cluster."""
    rows = [row for one in runs_below(run) for row in one.finished(one.read_manifest().jobs()).values()]
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
    )


def loss_change(stage: Path) -> LossChange | None:
    """What the log of the stage in folder *stage* says; None where it took no step."""
    losses = [line["loss"] for line in json.loads((stage / "log.json").read_text(encoding="utf-8")) if "loss" in line]
    quarter = max(1, len(losses) // 4)
    return LossChange(first=fmean(losses[:quarter]), last=fmean(losses[-quarter:])) if losses else None


def critic_scores(said: Sequence[float], true: Sequence[float]) -> CriticScores | None:
    """None where there is nothing to compare."""
    if not said:
        return None
    spearman = rank_correlation(said, true)
    return CriticScores(
        rows=len(said),
        absolute_error=fmean(abs(one - other) for one, other in zip(said, true, strict=True)),
        spearman=None if math.isnan(spearman) else spearman,
    )
