"""`mira eval texts`: how well a model reads pages: captions, text in pictures, questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.tables import Column, FittedTable
from training.cli.answer_source import (
    Family,
    Limit,
    Policy,
    Predictions,
    ScoreFolder,
    Workers,
    answers_to,
    check_source,
    report_scores,
)

if TYPE_CHECKING:
    from training.grpo.text_scores import TextScore


def evaluate_texts(
    files: Annotated[list[Path], typer.Argument(help="JSON Lines files of examples.", metavar="EXAMPLES")],
    policy: Policy = None,
    predictions: Predictions = None,
    out: ScoreFolder = None,
    vision_profile: Family = "auto",
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum number of visible tokens of an answer.")] = 512,
    limit: Limit = None,
    workers: Workers = 1,
    base_url: options.BaseUrl = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Evaluate a model on questions whose answer is a text: ROUGE-L, F1 of words or accuracy, by part of the data."""
    from training.grpo.examples import check_images, read_example_files
    from training.grpo.text_scores import check_texts, score_texts

    check_source(policy, predictions, base_url)
    examples = read_example_files(files)[:limit]
    check_texts(examples)
    check_images(examples)
    answers = answers_to(
        examples,
        policy,
        predictions,
        out,
        family=vision_profile,
        base_url=base_url,
        max_tokens=max_tokens,
        workers=workers,
        noun="questions",
        quiet=as_json,
    )
    scores = score_texts(examples, answers)
    title = policy or str(predictions)
    return report_scores(scores, out, as_json=as_json, table=lambda: _table(scores, title))


def _table(scores: Sequence[TextScore], title: str) -> FittedTable:
    from training.loop.evaluation.drawing import percent

    columns = ("n", "score (95 %)", "tokens")
    ranked = (Column(name, right=True, drop=place) for place, name in enumerate(columns))
    table = FittedTable(Column("part"), Column("metric"), *ranked, title=title)
    for score in scores:
        table.row(score.group or "all", score.metric, str(score.examples), percent(score.score), f"{score.tokens:.1f}")
    return table
