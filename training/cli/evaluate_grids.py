"""`mira eval grids`: how many puzzles a model solves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.tables import Column, FittedTable
from training.cli.answer_source import (
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
    from training.grpo.grid_scores import GridScore


def evaluate_grids(
    files: Annotated[list[Path], typer.Argument(help="JSON Lines files of puzzles.", metavar="PUZZLES")],
    policy: Policy = None,
    predictions: Predictions = None,
    out: ScoreFolder = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum number of visible tokens of an answer.")] = 2048,
    limit: Limit = None,
    workers: Workers = 1,
    base_url: options.BaseUrl = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Evaluate a model on grid puzzles: solved, proximity, near misses, by kind, with intervals."""
    from training.grpo.examples import read_example_files
    from training.grpo.grid_scores import check_puzzles, score_grids

    check_source(policy, predictions, base_url)
    examples = read_example_files(files)[:limit]
    check_puzzles(examples)
    answers = answers_to(
        examples,
        policy,
        predictions,
        out,
        base_url=base_url,
        max_tokens=max_tokens,
        workers=workers,
        noun="puzzles",
        quiet=as_json,
    )
    scores = score_grids(examples, answers)
    title = policy or str(predictions)
    return report_scores(scores, out, as_json=as_json, table=lambda: _table(scores, title))


def _table(scores: Sequence[GridScore], title: str) -> FittedTable:
    from training.loop.evaluation.drawing import percent

    columns = ("n", "solved (95 %)", "proximity", "near\nmisses", "tokens", "thought\ntokens")
    ranked = (Column(name, right=True, drop=place) for place, name in enumerate(columns))
    table = FittedTable(Column("puzzles"), *ranked, title=title)
    for score in scores:
        thought = score.thought_tokens.value
        table.row(
            score.kind,
            str(score.examples),
            percent(score.correct),
            percent(score.proximity),
            f"{score.near_misses:.0%}",
            f"{score.tokens:.1f}",
            "-" if thought is None else f"{thought:.1f}",
        )
    return table
