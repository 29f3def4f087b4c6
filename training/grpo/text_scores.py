"""Scores answers to questions whose answer is a text, or the letter of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from envs.core.errors import BadInput
from envs.core.record import Record
from judges.statistics import RESAMPLES, Estimate, clustered_mean
from models.vision.answers import read_completion
from training.grpo.examples import Example
from training.grpo.predictions import Prediction
from training.grpo.rewards import OptionTarget, TextTarget, proximity_score


class TextScore(Record):
    """Numbers of the answers to one part of the examples."""

    group: str
    """Part of the data set, such as VisualWebBench's subtask; empty where the examples name none."""
    metric: str
    """`rouge_l` or `word_f1` (:mod:`training.grpo.rewards.texts`); `accuracy` of letters."""
    examples: int
    score: Estimate
    """Mean of the metric, 0 to 1, with the interval of a bootstrap over page templates, or over examples where no
    template is known."""
    tokens: float
    """Mean tokens of an answer with its hidden thoughts, as far as the model counts them."""


def check_texts(examples: Sequence[Example]) -> None:
    """Raises BadInput if one of *examples* does not ask for a text or the letter of one."""
    for example in examples:
        if not isinstance(example.target, TextTarget | OptionTarget):
            raise BadInput(f"example {example.name!r} asks for no text: its target must be a text or an option")


def score_texts(examples: Sequence[Example], predictions: Mapping[str, Prediction]) -> tuple[TextScore, ...]:
    """The numbers of each group of *examples*, and of each metric in it, by name."""
    parts: dict[tuple[str, str], list[Example]] = {}
    for example in examples:
        group = example.facts.group if example.facts is not None else ""
        parts.setdefault((group, _metric(example)), []).append(example)
    return tuple(_score(group, metric, held, predictions) for (group, metric), held in sorted(parts.items()))


def _score(group: str, metric: str, examples: Sequence[Example], predictions: Mapping[str, Prediction]) -> TextScore:
    answers = [predictions[example.name] for example in examples]
    values = [
        proximity_score(example.target, read_completion(answer.answer))
        for example, answer in zip(examples, answers, strict=True)
    ]
    return TextScore(
        group=group,
        metric=metric,
        examples=len(examples),
        score=clustered_mean(values, list(map(_cluster, examples)), resamples=RESAMPLES, seed=0),
        tokens=fmean(answer.tokens for answer in answers),
    )


def _metric(example: Example) -> str:
    return example.target.metric if isinstance(example.target, TextTarget) else "accuracy"


def _cluster(example: Example) -> str:
    return (example.facts is not None and example.facts.template) or example.name
