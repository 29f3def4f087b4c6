"""The rows, columns and metrics of an update by group-relative advantages (M-GRPO)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from agent.run.discover_traces import discover_traces
from training.data.columns import Column
from training.data.rows import Row
from training.data.trajectories import Trajectory
from training.loop.advantage_columns import ActorRows
from training.loop.data import PhaseData
from training.loop.durations import training_seconds
from training.loop.metrics import GroupMetrics
from training.loop.phase_context import PhaseContext
from training.mira.group_advantages import count_groups, episode_advantages, groups_of, row_weights


def group_rows(context: PhaseContext, data: PhaseData) -> ActorRows:
    """The rows of the episodes of groups with different rewards, each with its episode's advantage."""
    settings = context.settings.groups
    groups = groups_of(data.trajectories, settings)
    advantages = episode_advantages(groups, settings)
    means = {member: group.mean for group in groups for member in group.members}
    places = [place for place, row in enumerate(data.rows) if row.trajectory in advantages and data.allowed[place]]
    chosen = [data.rows[place] for place in places]
    refused = list(_rejected_rows(data.trajectories, advantages, context.settings.compute.max_tokens))
    rows = with_logprobs(context, [*chosen, *refused])
    references = [data.references[place] for place in places]
    references += [sum(row.sampled or ()) for row in rows[len(places) :]]
    by_row = [advantages[row.trajectory] for row in rows]
    return ActorRows(
        rows=rows,
        columns={
            Column.ADVANTAGE: by_row,
            Column.WEIGHT: row_weights(rows, settings),
            Column.VALUE: [means[row.trajectory] for row in rows],
            Column.REFERENCE: references,
            Column.SUCCESS: [data.trajectories[row.trajectory].success for row in rows],
        },
        advantages=by_row,
        outcomes=[data.trajectories[row.trajectory].success for row in rows],
        groups=GroupMetrics(
            counts=count_groups(groups),
            unreadable_rows=len(refused),
            tokens=sum(map(len, rows)) * context.settings.actor.optimization.epochs,
        ),
    )


def _rejected_rows(
    trajectories: Sequence[Trajectory], advantages: Mapping[int, float], max_tokens: int
) -> Iterator[Row]:
    """Rows of answers without an action, of episodes with a negative advantage: better ones succeeded in spite of them.
    Their times follow those of the decisions. Rows longer than *max_tokens* are left out."""
    for index, advantage in advantages.items():
        episode = trajectories[index]
        for time, decision in enumerate(episode.rejected if advantage < 0 else (), len(episode.decisions)):
            tokens = decision.tokens
            if tokens is not None and len(tokens.prompt) + len(tokens.completion) <= max_tokens:
                yield Row(tokens.prompt, tokens.completion, index, time, tokens.logprobs)


def with_logprobs(context: PhaseContext, rows: Sequence[Row]) -> tuple[Row, ...]:
    """*rows* with the log-probabilities that the objective needs: those recorded at play, or the policy's by
    `groups.old_logprobs` and where the server returned none, and with a KL penalty those of the start."""
    every = context.settings.groups.old_logprobs == "scored"
    unknown = [place for place, row in enumerate(rows) if every or row.sampled is None]
    if unknown:
        context.log(f"phase {context.number}: scoring {len(unknown)} of {len(rows)} answers with the policy")
        scores = context.token_scores(context.policy, [rows[place] for place in unknown])
        known = dict(zip(unknown, scores, strict=True))
        rows = [dataclasses.replace(row, sampled=known.get(place, row.sampled)) for place, row in enumerate(rows)]
    if context.settings.actor.objective.kl:
        starts = context.token_scores(context.start, rows)
        rows = [dataclasses.replace(row, start=start) for row, start in zip(rows, starts, strict=True)]
    return tuple(rows)


def group_metrics(begun: GroupMetrics, stage: Path, runs: Sequence[Path]) -> GroupMetrics:
    """*begun* with the numbers of the actor's *stage* and of the rollouts."""
    lines = json.loads((stage / "log.json").read_text(encoding="utf-8"))
    browser, model = play_seconds(runs)
    return begun.model_copy(
        update={
            "rounds": len(runs),
            "kl": _mean(line["kl"] for line in lines if "kl" in line),
            "clipped": _mean(line["clipped"] for line in lines if "clipped" in line),
            "log_ratio": _mean(line["log_ratio"] for line in lines if "log_ratio" in line),
            "browser_seconds": round(browser, 2),
            "model_seconds": round(model, 2),
        }
    )


def play_seconds(runs: Sequence[Path]) -> tuple[float, float]:
    """(seconds in the browser: observing and acting, seconds in the policy's calls), summed over the episodes of
    *runs*. Episodes overlap with several workers, so that the sums can exceed the wall time."""
    browser = model = 0.0
    for file in discover_traces(runs):
        for step in file.read().steps:
            if step.commit is not None:
                browser += step.commit.timings.observe + step.commit.timings.execute
            model += sum(call.seconds for call in step.intent.calls if call.role == "policy")
    return browser, model


def describe_groups(metrics: GroupMetrics, seconds: dict[str, float]) -> str:
    """One line of progress."""
    counts = metrics.counts
    training = training_seconds(seconds)
    parts = [
        f"reward {counts.reward:.3f}" if counts.reward is not None else "no reward",
        f"{counts.informative} of {counts.groups} groups with different rewards"
        f" ({counts.all_solved} all solved, {counts.all_failed} all failed)",
    ]
    parts += [f"KL from the start {metrics.kl:.4f}"] if metrics.kl is not None else []
    parts += [f"{metrics.clipped:.1%} of tokens clipped"] if metrics.clipped is not None else []
    if "rollouts" in seconds:
        parts.append(f"played {seconds['rollouts']:.0f} s ({metrics.browser_share:.0%} in the browser)")
    took = seconds.get("actor", 0.0)
    speed = f" ({metrics.tokens / took:.0f} tokens a second in the update)" if took and metrics.tokens else ""
    parts.append(f"trained {training:.0f} s{speed}")
    return ", ".join(parts)


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return fmean(numbers) if numbers else None
