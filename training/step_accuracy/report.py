"""The metrics of answered steps with their intervals: Wilson's, and of a bootstrap over whole episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from envs.core.actions import Action
from envs.core.record import Record
from judges.statistics import RESAMPLES, Estimate, clustered_mean, proportion
from models.vision.answers import Scale
from training.grpo.predictions import mean_thought_tokens
from training.grpo.rewards.geometry import Point
from training.step_accuracy.answers import AskedStep, StepAnswer, action_in, place_in
from training.step_accuracy.rules import ElementScore, StepScore, score_element, score_step


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


class ElementMetrics(Record):
    """Mind2Web's metrics over steps whose element is known, and over their episodes."""

    steps: int
    episodes: int
    element: Rate
    """Ele.Acc over all steps."""
    operation_f1: Estimate
    """Op.F1 over all steps; the interval is over episodes."""
    success: Rate
    """Step SR over all steps."""
    macro_element: Estimate
    """Ele.Acc as the paper averages: the mean over episodes of the mean over their steps. The interval is over
    episodes, as those of the other means."""
    macro_operation_f1: Estimate
    macro_success: Estimate
    task_success: Estimate
    """SR: the share of episodes with every step right, with Wilson's interval."""


class EpisodeMetrics(Record):
    """Full task success rate (AdaGUI-R1, Table 7): episodes with every step right that the examples hold, with
    Wilson's interval. Steps whose episode is not known do not count."""

    episodes: int
    success: Estimate
    """Every step by SR."""
    exact_match: Estimate
    """Every step by EM, as AdaGUI-R1 judges steps."""


class PlanningScore(Record):
    """What `mira eval planning` prints."""

    policy: str
    overall: StepMetrics
    by_type: dict[str, StepMetrics]
    """By the type of the correct action."""
    by_platform: dict[str, StepMetrics]
    by_group: dict[str, StepMetrics]
    """By part of the data set, such as Mind2Web's test_task."""
    mind2web: dict[str, ElementMetrics]
    """Of all steps whose element is known (`all`), and by part of the data set if there are several; empty without
    such steps."""
    full_tasks: EpisodeMetrics
    episodes: int
    unreadable: int
    """Answers without an action."""


@dataclass(frozen=True, slots=True)
class ScoredStep:
    step: AskedStep
    answer: StepAnswer
    score: StepScore
    action: Action | None
    """The answered action, with points in pixels of the screenshot; None without one."""
    place: Point | None
    """Where it acts: :func:`training.step_accuracy.answers.place_in`."""
    element: ElementScore | None
    """None: the element is not known."""


def score_answers(
    steps: Sequence[AskedStep], answers: Mapping[str, StepAnswer], scale: Callable[[AskedStep], Scale]
) -> list[ScoredStep]:
    """Scores the answer to each of *steps*. *scale*: pixels per unit of its coordinates."""
    scored: list[ScoredStep] = []
    for step in steps:
        answer, pixels = answers[step.example.name], scale(step)
        action, place = action_in(step, answer.answer, pixels), place_in(step, answer.answer, pixels)
        score = score_step(step.target, action, step.size)
        element = score_element(step.target.action, step.elements, action, place) if step.elements else None
        scored.append(ScoredStep(step, answer, score, action, place, element))
    return scored


def summarise(policy: str, scored: Sequence[ScoredStep]) -> PlanningScore:
    """The metrics over all steps, and by type, platform and part of the data set."""
    return PlanningScore(
        policy=policy,
        overall=_metrics(scored),
        by_type={name: _metrics(held) for name, held in _divided(scored, lambda one: str(one.score.kind))},
        by_platform={name: _metrics(held) for name, held in _divided(scored, lambda one: one.step.platform)},
        by_group={name: _metrics(held) for name, held in _divided(scored, lambda one: one.step.group)},
        mind2web=_mind2web(scored),
        full_tasks=_full_tasks(scored),
        episodes=len({one.step.episode for one in scored}),
        unreadable=sum(one.action is None for one in scored),
    )


def _divided(scored: Sequence[ScoredStep], key: Callable[[ScoredStep], str]) -> list[tuple[str, list[ScoredStep]]]:
    """The steps by *key*, in their order; without those whose key is empty."""
    by_key: dict[str, list[ScoredStep]] = {}
    for one in scored:
        by_key.setdefault(key(one), []).append(one)
    return [(name, held) for name, held in by_key.items() if name]


def _full_tasks(scored: Sequence[ScoredStep]) -> EpisodeMetrics:
    episodes = [held for _, held in _divided([one for one in scored if one.step.has_episode], _episode)]
    return EpisodeMetrics(
        episodes=len(episodes),
        success=_all_right(episodes, lambda one: one.score.success),
        exact_match=_all_right(episodes, lambda one: one.score.exact_match),
    )


def _episode(scored: ScoredStep) -> str:
    return scored.step.episode


def _all_right(episodes: Sequence[Sequence[ScoredStep]], right: Callable[[ScoredStep], bool]) -> Estimate:
    return proportion(sum(all(map(right, held)) for held in episodes), len(episodes))


def _mind2web(scored: Sequence[ScoredStep]) -> dict[str, ElementMetrics]:
    known = [one for one in scored if one.element is not None]
    if not known:
        return {}
    groups = _divided(known, lambda one: one.step.group)
    parts = [("all", known), *(groups if len(groups) > 1 else ())]
    return {name: _element_metrics(held) for name, held in parts}


def _element_metrics(scored: Sequence[ScoredStep]) -> ElementMetrics:
    episodes = [held for _, held in _divided(scored, _episode)]

    def over_steps(value: Callable[[ElementScore], float]) -> Estimate:
        values = [value(_element(one)) for one in scored]
        return clustered_mean(values, [one.step.episode for one in scored], resamples=RESAMPLES, seed=0)

    def over_episodes(value: Callable[[ElementScore], float]) -> Estimate:
        means = [fmean(value(_element(one)) for one in held) for held in episodes]
        names = [held[0].step.episode for held in episodes]
        return clustered_mean(means, names, resamples=RESAMPLES, seed=0)

    def rate(right: Callable[[ElementScore], bool]) -> Rate:
        return Rate(
            wilson=proportion(sum(right(_element(one)) for one in scored), len(scored)), by_episode=over_steps(right)
        )

    return ElementMetrics(
        steps=len(scored),
        episodes=len(episodes),
        element=rate(lambda score: score.element),
        operation_f1=over_steps(lambda score: score.operation_f1),
        success=rate(lambda score: score.success),
        macro_element=over_episodes(lambda score: score.element),
        macro_operation_f1=over_episodes(lambda score: score.operation_f1),
        macro_success=over_episodes(lambda score: score.success),
        task_success=_all_right(episodes, lambda one: _element(one).success),
    )


def _element(scored: ScoredStep) -> ElementScore:
    assert scored.element is not None
    return scored.element


def _metrics(scored: Sequence[ScoredStep]) -> StepMetrics:
    grounded = [one for one in scored if one.score.grounded is not None]
    return StepMetrics(
        steps=len(scored),
        type=_rate(scored, lambda score: score.type_right),
        grounding=_rate(grounded, lambda score: bool(score.grounded)),
        success=_rate(scored, lambda score: score.success),
        type_match=_rate(scored, lambda score: score.type_match),
        exact_match=_rate(scored, lambda score: score.exact_match),
        thought_tokens=mean_thought_tokens([(one.answer.thought_tokens, one.step.episode) for one in scored], seed=0),
    )


def _rate(scored: Sequence[ScoredStep], right: Callable[[StepScore], bool]) -> Rate:
    values = [right(one.score) for one in scored]
    clusters = [one.step.episode for one in scored]
    return Rate(
        wilson=proportion(sum(values), len(values)),
        by_episode=clustered_mean([float(value) for value in values], clusters, resamples=RESAMPLES, seed=0),
    )
