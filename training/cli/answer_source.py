"""The source of the answers that `mira eval grounding`, `planning`, `grids` and `texts` score: a model or a file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from agent.cli.options import check_base_url
from agent.cli.output import EXIT_OK, counting, print_json, print_table, stdout
from agent.cli.outputs import output_folder
from agent.cli.tables import FittedTable
from envs.core.errors import BadInput

if TYPE_CHECKING:
    from envs.core.record import Record
    from models.base import ChatModel
    from training.grpo.examples import Example
    from training.grpo.predictions import Answer, Prediction, StoredAnswers

A = TypeVar("A", bound="Answer")
T = TypeVar("T")

Policy = Annotated[str | None, typer.Option(help="Model spec.")]
Predictions = Annotated[Path | None, typer.Option(help="Score this file of predictions instead: name and answer.")]
ScoreFolder = Annotated[
    Path | None,
    output_folder("Folder for predictions.jsonl and score.json; an interrupted evaluation continues."),
]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Number of examples to use, from the start of the files; default: all.")
]
Workers = Annotated[int, typer.Option(min=1, max=256, help="Number of questions in parallel.")]
Family = Annotated[
    str,
    typer.Option(
        "--vision-profile",
        help="Family of the model, which sets its coordinates, as `mira models` lists them; or auto.",
    ),
]


def check_source(policy: str | None, predictions: Path | None, base_url: str | None) -> None:
    """Raises BadInput unless answers come from exactly one of model and file, and for a *base_url* that is not used."""
    if (policy is None) == (predictions is None):
        raise BadInput("name either a model, --policy, or a file of --predictions")
    check_base_url(base_url, () if policy is None else (policy,), "--policy")


def ask_for_missing(
    spec: str,
    base_url: str | None,
    asked: Sequence[T],
    name: Callable[[T], str],
    stored: StoredAnswers[A],
    answer: Callable[[ChatModel, Sequence[T], Callable[[A], None]], Awaitable[None]],
    *,
    noun: str,
    quiet: bool,
) -> dict[str, A]:
    """Asks the model for what *stored* lacks of *asked*, with the progress of *noun*. *answer* gives each answer to its
    last argument as it comes."""
    from models.specs import make_model

    missing = [each for each in asked if name(each) not in stored.answers]
    if not missing:
        return stored.answers
    with stored, counting(noun, len(asked), quiet=quiet) as watch:

        def keep(prediction: A) -> None:
            stored.add(prediction)
            watch(len(stored.answers))

        async def ask() -> None:
            model = make_model(spec, base_url=base_url)
            try:
                await answer(model, missing, keep)
            finally:
                await model.aclose()

        watch(len(stored.answers))
        asyncio.run(ask())
    return stored.answers


def answers_to(
    examples: Sequence[Example],
    policy: str | None,
    predictions: Path | None,
    out: Path | None,
    *,
    family: str = "auto",
    base_url: str | None,
    max_tokens: int,
    workers: int,
    noun: str,
    quiet: bool,
) -> dict[str, Prediction]:
    """The answers to *examples*, asked as they stand: those in the file *predictions*, or of the model *policy*, which
    is asked what the folder *out* lacks. *family*: a vision profile, or `auto`. Raises BadInput if the model reads text
    only and an example has an image."""
    from training.grpo.predictions import Asked, Prediction, StoredAnswers, check_predictions, read_predictions

    if predictions is not None:
        given = read_predictions(predictions, Prediction)
        check_predictions(given, examples)
        return given
    from models.vision.checkpoints import vision_profile
    from training.cli.messages import reporting_full_disk
    from training.grpo.answering import answer_examples
    from training.grpo.examples import examples_digest

    assert policy is not None
    pictured = any(example.image is not None for example in examples)
    profile = vision_profile(policy, family) if pictured else None
    if pictured and profile is None:
        raise BadInput(f"--policy: {policy} reads text only; name a vision-language model")
    name, digest = "" if profile is None else profile.name, examples_digest(examples)
    asked = Asked(policy=policy, profile=name, max_tokens=max_tokens, examples=digest)

    async def answer(model: ChatModel, missing: Sequence[Example], keep: Callable[[Prediction], None]) -> None:
        await answer_examples(model, profile, missing, keep, max_tokens=max_tokens, workers=workers)

    with reporting_full_disk(out or Path()):
        stored = StoredAnswers.open(out, asked, Prediction)
        return ask_for_missing(
            policy, base_url, examples, lambda example: example.name, stored, answer, noun=noun, quiet=quiet
        )


def report_scores(
    scores: Sequence[Record], out: Path | None, *, as_json: bool, table: Callable[[], FittedTable]
) -> int:
    """Writes *scores* to `score.json` in the folder *out*, if there is one, and prints them: as JSON, or as their
    *table*. Returns the exit code."""
    from envs.core.atomic_write import write_atomically
    from training.cli.messages import reporting_full_disk

    values = [score.model_dump(mode="json") for score in scores]
    if out is not None:
        with reporting_full_disk(out):
            write_atomically(out / "score.json", json.dumps(values, indent=1) + "\n")
    if as_json:
        print_json(values)
        return EXIT_OK
    print_table(table())
    if out is not None:
        stdout.print(f"score: {out / 'score.json'}", highlight=False, markup=False, soft_wrap=True)
    return EXIT_OK
