"""Scores answers to puzzles as training does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from envs.core.errors import BadInput
from envs.core.record import Record
from judges.statistics import RESAMPLES, Estimate, clustered_mean, proportion
from models.vision.answers import read_completion
from training.grpo.examples import Example
from training.grpo.predictions import Prediction, mean_thought_tokens
from training.grpo.rewards import GridTarget, MazeTarget, SudokuTarget, is_right, proximity_score
from training.grpo.rewards.ssl import NEAR_MISS


class GridScore(Record):
    """Numbers of the answers to one kind of puzzle, or to all."""

    kind: str
    examples: int
    correct: Estimate
    """Share of right answers, with Wilson's interval."""
    proximity: Estimate
    """Mean S of the SSL paper, 0 to 1, with the interval of a bootstrap over puzzles."""
    near_misses: float
    """Share of answers that are wrong and have S above `NEAR_MISS`."""
    tokens: float
    """Mean tokens of an answer with its hidden thoughts, as far as the model counts them."""
    thought_tokens: Estimate
    """Mean tokens of thoughts over the answers of which they are known, with the interval of a bootstrap over
    puzzles."""


def check_puzzles(examples: Sequence[Example]) -> None:
    """Raises BadInput if one of *examples* is no puzzle of text alone."""
    for example in examples:
        if not isinstance(example.target, MazeTarget | SudokuTarget | GridTarget) or example.image is not None:
            raise BadInput(f"example {example.name!r} is not a puzzle: its target must be a maze, a sudoku or a grid")


def score_grids(examples: Sequence[Example], predictions: Mapping[str, Prediction]) -> tuple[GridScore, ...]:
    """The numbers of all *examples*, which are not empty, then of each kind if there are several."""
    by_kind: dict[str, list[Example]] = {}
    for example in examples:
        by_kind.setdefault(example.target.kind, []).append(example)
    kinds = [("all", list(examples)), *(sorted(by_kind.items()) if len(by_kind) > 1 else ())]
    return tuple(_score(kind, held, predictions) for kind, held in kinds)


def _score(kind: str, examples: Sequence[Example], predictions: Mapping[str, Prediction]) -> GridScore:
    answers = [read_completion(predictions[example.name].answer) for example in examples]
    right = [is_right(example.target, answer) for example, answer in zip(examples, answers, strict=True)]
    near = [proximity_score(example.target, answer) for example, answer in zip(examples, answers, strict=True)]
    missed = [not correct and close > NEAR_MISS for correct, close in zip(right, near, strict=True)]
    names = [example.name for example in examples]
    return GridScore(
        kind=kind,
        examples=len(examples),
        correct=proportion(sum(right), len(right)),
        proximity=clustered_mean(near, names, resamples=RESAMPLES, seed=0),
        near_misses=fmean(missed),
        tokens=fmean(predictions[name].tokens for name in names),
        thought_tokens=mean_thought_tokens([(predictions[name].thought_tokens, name) for name in names]),
    )
