"""`mira eval grids`: how many puzzles a model solves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.output import EXIT_OK, print_json, print_table, stdout
from agent.cli.tables import Column, FittedTable
from training.cli.answer_source import Limit, Policy, Predictions, Workers, ask_for_missing, check_source
from training.cli.messages import reporting_full_disk

if TYPE_CHECKING:
    from models.base import ChatModel
    from training.grpo.examples import Example
    from training.grpo.grid_scores import GridScore
    from training.grpo.predictions import Prediction


def evaluate_grids(
    files: Annotated[list[Path], typer.Argument(help="JSON Lines files of puzzles.", metavar="PUZZLES")],
    policy: Policy = None,
    predictions: Predictions = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder for predictions.jsonl and score.json; an interrupted evaluation continues."
        ),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Most visible tokens of an answer.")] = 2048,
    limit: Limit = None,
    workers: Workers = 1,
    base_url: options.BaseUrl = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Evaluate a model on grid puzzles: solved, proximity, near misses, by kind, with intervals."""
    from training.grpo.examples import read_example_files
    from training.grpo.grid_scores import check_puzzles, score_grids
    from training.grpo.predictions import Prediction, check_predictions, read_predictions

    check_source(policy, predictions)
    examples = read_example_files(files)[:limit]
    check_puzzles(examples)
    if predictions is not None:
        answers = read_predictions(predictions, Prediction)
        check_predictions(answers, examples)
    else:
        assert policy is not None
        with reporting_full_disk(out or Path()):
            answers = _ask(policy, base_url, examples, out, max_tokens, workers, quiet=as_json)
    scores = score_grids(examples, answers)
    if out is not None:
        _write(out, scores)
    if as_json:
        print_json([score.model_dump(mode="json") for score in scores])
        return EXIT_OK
    _print(scores, policy or str(predictions), out)
    return EXIT_OK


def _write(out: Path, scores: Sequence[GridScore]) -> None:
    from envs.core.atomic_write import write_atomically

    with reporting_full_disk(out):
        out.mkdir(parents=True, exist_ok=True)
        shown = [score.model_dump(mode="json") for score in scores]
        write_atomically(out / "score.json", json.dumps(shown, indent=1) + "\n")


def _print(scores: Sequence[GridScore], title: str, out: Path | None) -> None:
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
    print_table(table)
    if out is not None:
        stdout.print(f"score: {out / 'score.json'}", highlight=False, markup=False, soft_wrap=True)


def _ask(
    spec: str,
    base_url: str | None,
    examples: Sequence[Example],
    out: Path | None,
    max_tokens: int,
    workers: int,
    *,
    quiet: bool,
) -> dict[str, Prediction]:
    """Asks the model for what *out* lacks."""
    from training.grpo.examples import examples_digest
    from training.grpo.grid_scores import answer_puzzles
    from training.grpo.predictions import Asked, Prediction, StoredAnswers

    asked = Asked(policy=spec, max_tokens=max_tokens, examples=examples_digest(examples))

    async def answer(model: ChatModel, missing: Sequence[Example], keep: Callable[[Prediction], None]) -> None:
        await answer_puzzles(model, missing, keep, max_tokens=max_tokens, workers=workers)

    stored = StoredAnswers.open(out, asked, Prediction)
    return ask_for_missing(
        spec, base_url, examples, lambda example: example.name, stored, answer, noun="puzzles", quiet=quiet
    )
