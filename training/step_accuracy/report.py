"""The metrics of answered steps with their intervals: Wilson's, and of a bootstrap over whole episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from envs.core.record import Record
from judges.statistics import Estimate, clustered_mean, proportion
from models.vision.answers import Scale
from training.step_accuracy.answers import AskedStep, StepAnswer, action_in
from training.step_accuracy.rules import StepScore, score_step

RESAMPLES: Final = 2_000


class Rate(Record):
    """A share of steps."""

    wilson: Estimate
    """As if steps were independent."""
    by_episode: Estimate
    """Steps of one episode are drawn together, because they are not."""


class StepMetrics(Record):
    """The metrics of :mod:`training.step_accuracy.rules` over some steps."""

    steps: int
    type: Rate
    grounding: Rate
    """Of the clicks that were answered by a click."""
    success: Rate
    type_match: Rate
    exact_match: Rate
    thought_tokens: Estimate
    """Mean, over the answers of which it is known; the interval is over episodes."""


class PlanningScore(Record):
    """What `mira eval planning` prints."""

    policy: str
    overall: StepMetrics
    by_type: dict[str, StepMetrics]
    """By the type of the correct action."""
    by_platform: dict[str, StepMetrics]
    episodes: int
    unreadable: int
    """Answers without an action."""


@dataclass(frozen=True, slots=True)
class ScoredStep:
    step: AskedStep
    answer: StepAnswer
    score: StepScore
    readable: bool


def score_answers(
    steps: Sequence[AskedStep], answers: Mapping[str, StepAnswer], scale: Callable[[AskedStep], Scale]
) -> list[ScoredStep]:
    """Scores the answer to each of *steps*. *scale*: pixels per unit of its coordinates."""
    scored: list[ScoredStep] = []
    for step in steps:
        answer = answers[step.example.name]
        action = action_in(step, answer.answer, scale(step))
        scored.append(ScoredStep(step, answer, score_step(step.target, action, step.size), action is not None))
    return scored


def summarise(policy: str, scored: Sequence[ScoredStep], *, seed: int = 0) -> PlanningScore:
    """The metrics over all steps, and by type and platform."""
    kinds = dict.fromkeys(one.score.kind for one in scored)
    platforms = dict.fromkeys(one.step.platform for one in scored)
    by_type = {str(kind): _metrics([one for one in scored if one.score.kind is kind], seed) for kind in kinds}
    by_platform = {
        platform: _metrics([one for one in scored if one.step.platform == platform], seed)
        for platform in platforms
        if platform
    }
    return PlanningScore(
        policy=policy,
        overall=_metrics(scored, seed),
        by_type=by_type,
        by_platform=by_platform,
        episodes=len({one.step.episode for one in scored}),
        unreadable=sum(not one.readable for one in scored),
    )


def _metrics(scored: Sequence[ScoredStep], seed: int) -> StepMetrics:
    grounded = [one for one in scored if one.score.grounded is not None]
    counted = [one for one in scored if one.answer.thought_tokens is not None]
    return StepMetrics(
        steps=len(scored),
        type=_rate(scored, lambda score: score.type_right, seed),
        grounding=_rate(grounded, lambda score: bool(score.grounded), seed),
        success=_rate(scored, lambda score: score.success, seed),
        type_match=_rate(scored, lambda score: score.type_match, seed),
        exact_match=_rate(scored, lambda score: score.exact_match, seed),
        thought_tokens=clustered_mean(
            [float(one.answer.thought_tokens or 0) for one in counted],
            [one.step.episode for one in counted],
            resamples=RESAMPLES,
            seed=seed,
        ),
    )


def _rate(scored: Sequence[ScoredStep], right: Callable[[StepScore], bool], seed: int) -> Rate:
    values = [right(one.score) for one in scored]
    clusters = [one.step.episode for one in scored]
    return Rate(
        wilson=proportion(sum(values), len(values)),
        by_episode=clustered_mean([float(value) for value in values], clusters, resamples=RESAMPLES, seed=seed),
    )
