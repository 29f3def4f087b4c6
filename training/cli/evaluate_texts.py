"""`mira eval texts`: how well a model reads pages: captions, text in pictures, questions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.output import EXIT_OK, print_json, print_table, stdout
from agent.cli.tables import Column, FittedTable
from envs.core.errors import BadInput
from training.cli.answer_source import Family, Limit, Policy, Predictions, Workers, ask_for_missing, check_source
from training.cli.messages import reporting_full_disk

if TYPE_CHECKING:
    from models.base import ChatModel
    from training.grpo.examples import Example
    from training.grpo.predictions import Prediction
    from training.grpo.text_scores import TextScore


def evaluate_texts(
    files: Annotated[list[Path], typer.Argument(help="JSON Lines files of examples.", metavar="EXAMPLES")],
    policy: Policy = None,
    predictions: Predictions = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder for predictions.jsonl and score.json; an interrupted evaluation continues."
        ),
    ] = None,
    vision_profile: Family = "auto",
    max_tokens: Annotated[int, typer.Option(min=1, help="Most visible tokens of an answer.")] = 512,
    limit: Limit = None,
    workers: Workers = 1,
    base_url: options.BaseUrl = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Evaluate a model on questions whose answer is a text: ROUGE-L, F1 of words or accuracy, by part of the data."""
    from training.grpo.examples import check_images, read_example_files
    from training.grpo.predictions import Prediction, check_predictions, read_predictions
    from training.grpo.text_scores import check_texts, score_texts

    check_source(policy, predictions)
    examples = read_example_files(files)[:limit]
    check_texts(examples)
    check_images(examples)
    if predictions is not None:
        answers = read_predictions(predictions, Prediction)
        check_predictions(answers, examples)
    else:
        assert policy is not None
        with reporting_full_disk(out or Path()):
            answers = _ask(policy, vision_profile, base_url, examples, out, max_tokens, workers, quiet=as_json)
    scores = score_texts(examples, answers)
    if out is not None:
        _write(out, scores)
    if as_json:
        print_json([score.model_dump(mode="json") for score in scores])
        return EXIT_OK
    _print(scores, policy or str(predictions), out)
    return EXIT_OK


def _write(out: Path, scores: Sequence[TextScore]) -> None:
    from envs.core.atomic_write import write_atomically

    with reporting_full_disk(out):
        out.mkdir(parents=True, exist_ok=True)
        shown = [score.model_dump(mode="json") for score in scores]
        write_atomically(out / "score.json", json.dumps(shown, indent=1) + "\n")


def _print(scores: Sequence[TextScore], title: str, out: Path | None) -> None:
    from training.loop.evaluation.drawing import percent

    columns = ("n", "score (95 %)", "tokens")
    ranked = (Column(name, right=True, drop=place) for place, name in enumerate(columns))
    table = FittedTable(Column("part"), Column("metric"), *ranked, title=title)
    for score in scores:
        table.row(score.group or "all", score.metric, str(score.examples), percent(score.score), f"{score.tokens:.1f}")
    print_table(table)
    if out is not None:
        stdout.print(f"score: {out / 'score.json'}", highlight=False, markup=False, soft_wrap=True)


def _ask(
    spec: str,
    family: str,
    base_url: str | None,
    examples: Sequence[Example],
    out: Path | None,
    max_tokens: int,
    workers: int,
    *,
    quiet: bool,
) -> dict[str, Prediction]:
    """Asks the model for what *out* lacks."""
    from models.vision.checkpoints import vision_profile
    from training.grpo.examples import examples_digest
    from training.grpo.predictions import Asked, Prediction, StoredAnswers
    from training.grpo.text_scores import answer_texts

    profile = vision_profile(spec, family) if examples[0].image is not None else None
    if profile is None and examples[0].image is not None:
        raise BadInput(f"--policy: {spec} reads text only; name a model that sees pictures")
    name = "" if profile is None else profile.name
    asked = Asked(policy=spec, profile=name, max_tokens=max_tokens, examples=examples_digest(examples))

    async def answer(model: ChatModel, missing: Sequence[Example], keep: Callable[[Prediction], None]) -> None:
        await answer_texts(model, profile, missing, keep, max_tokens=max_tokens, workers=workers)

    stored = StoredAnswers.open(out, asked, Prediction)
    return ask_for_missing(
        spec, base_url, examples, lambda example: example.name, stored, answer, noun="questions", quiet=quiet
    )
