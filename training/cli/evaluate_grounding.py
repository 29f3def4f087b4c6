"""`mira eval grounding`: how often a model points at the right element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.output import EXIT_OK, print_json, print_table, stdout
from agent.cli.outputs import output_folder
from agent.cli.tables import Column, FittedTable
from envs.core.errors import BadInput
from training.cli.answer_source import Family, Limit, Workers, ask_for_missing, check_source
from training.cli.messages import reporting_full_disk

if TYPE_CHECKING:
    from models.base import ChatModel
    from training.grounding.scores import GroundingScore
    from training.grpo.examples import Example
    from training.grpo.predictions import Prediction


def evaluate_grounding(
    files: Annotated[list[Path], typer.Argument(help="JSON Lines files of examples.", metavar="EXAMPLES")],
    policy: Annotated[str | None, typer.Option(help="Model spec of a vision-language model.")] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Score this file of predictions instead: name, and point in pixels.")
    ] = None,
    out: Annotated[
        Path | None,
        output_folder("Folder for answers, numbers, plot and report; an interrupted evaluation continues."),
    ] = None,
    vision_profile: Family = "auto",
    max_tokens: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum number of visible tokens of an answer; default: 128, or 640 if a thought is asked for."
        ),
    ] = None,
    limit: Limit = None,
    shown: Annotated[int, typer.Option(min=0, max=10_000, help="Examples in the report, wrong ones first.")] = 60,
    workers: Workers = 1,
    base_url: options.BaseUrl = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Evaluate a model on examples of grounding: accuracy by group with intervals, offsets, a report with pictures."""
    from training.grounding.answering import asked_point
    from training.grounding.picturing import write_offsets, write_report
    from training.grounding.scores import score_all, summarise
    from training.grpo.examples import check_images, read_example_files
    from training.grpo.predictions import Prediction, check_predictions, read_predictions

    check_source(policy, predictions, base_url)
    examples = read_example_files(files)[:limit]
    for example in examples:
        asked_point(example)
    check_images(examples)
    if predictions is not None:
        answers, name = read_predictions(predictions, Prediction), str(predictions)
        check_predictions(answers, examples)
    else:
        assert policy is not None
        answers, name = (
            _ask(policy, vision_profile, base_url, examples, out, max_tokens, workers, quiet=as_json),
            policy,
        )
    scored = score_all(examples, answers)
    score = summarise(name, scored)
    if out is not None:
        with reporting_full_disk(out):
            out.mkdir(parents=True, exist_ok=True)
            (out / "score.json").write_text(score.model_dump_json(indent=1) + "\n", encoding="utf-8")
            write_offsets(scored, out / "offsets.svg")
            write_report(scored, score, out / "report.html", shown)
    if as_json:
        print_json(score.model_dump(mode="json"))
    else:
        _print(score, out)
    return EXIT_OK


def _ask(
    spec: str,
    profile: str,
    base_url: str | None,
    examples: Sequence[Example],
    out: Path | None,
    max_tokens: int | None,
    workers: int,
    *,
    quiet: bool,
) -> dict[str, Prediction]:
    """Asks the model for what *out* lacks."""
    from agent.run.grounders import form_of_model
    from training.grounding.answering import answer_all
    from training.grpo.examples import examples_digest
    from training.grpo.predictions import Asked, Prediction, StoredAnswers

    form = form_of_model(spec, profile)
    if form is None:
        raise BadInput(f"--policy: {spec} reads text only; name a vision-language model")
    asked = Asked(
        policy=spec,
        profile=form.profile.name,
        think=form.think,
        resolution=form.resolution,
        max_tokens=max_tokens,
        examples=examples_digest(examples),
    )

    async def answer(model: ChatModel, missing: Sequence[Example], keep: Callable[[Prediction], None]) -> None:
        await answer_all(model, form, missing, keep, max_tokens=max_tokens, workers=workers)

    stored = StoredAnswers.open(out, asked, Prediction)
    return ask_for_missing(
        spec, base_url, examples, lambda example: example.name, stored, answer, noun="examples", quiet=quiet
    )


def _print(score: GroundingScore, out: Path | None) -> None:
    from training.grounding.picturing import rows_of, tokens_in_words

    columns = (Column("examples"), Column("n", right=True), Column("accuracy (95 %)", right=True))
    table = FittedTable(*columns, Column("by template", right=True, drop=1), title=score.policy)
    for row in rows_of(score):
        table.row(row.name, str(row.examples), row.accuracy, row.clustered)
    print_table(table)
    offset = "-" if score.median_offset is None else f"{score.median_offset:.0f} px"
    stdout.print(
        f"proximity {score.proximity:.2f} · tier {score.tier:.2f} · median offset {offset} · "
        f"{score.without_point} answers without a point" + (f" · {tokens_in_words(score)}" if score.tokens else ""),
        highlight=False,
    )
    if out is not None:
        stdout.print(f"report: {out / 'report.html'}", highlight=False, markup=False, soft_wrap=True)
