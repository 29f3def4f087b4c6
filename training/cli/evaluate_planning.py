"""`mira eval planning`: how often a model takes the right next step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.output import EXIT_OK, print_json, print_table, stdout
from agent.cli.outputs import output_folder
from agent.cli.tables import Column, FittedTable
from envs.core.errors import BadInput
from training.cli.answer_source import Family, Limit, Policy, Predictions, Workers, ask_for_missing, check_source
from training.cli.messages import reporting_full_disk

if TYPE_CHECKING:
    from models.base import ChatModel
    from models.vision.profiles import VisionProfile
    from training.step_accuracy.answers import AskedStep, StepAnswer
    from training.step_accuracy.report import PlanningScore, ScoredStep


def evaluate_planning(
    files: Annotated[list[Path], typer.Argument(help="JSON Lines files of step examples.", metavar="EXAMPLES")],
    policy: Policy = None,
    predictions: Predictions = None,
    out: Annotated[
        Path | None,
        output_folder("Folder for answers, numbers and report; an interrupted evaluation continues."),
    ] = None,
    vision_profile: Family = "auto",
    coordinates: Annotated[
        str | None,
        typer.Option(
            help="Units that the prompts ask for: pixels, resized, thousand or unit; default: those of the model's "
            "family, pixels for predictions."
        ),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum number of visible tokens of an answer.")] = 512,
    limit: Limit = None,
    shown: Annotated[int, typer.Option(min=0, max=10_000, help="Steps in the report, wrong ones first.")] = 60,
    workers: Workers = 1,
    base_url: options.BaseUrl = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Evaluate a model on single steps: Type, GR and SR by OS-Atlas' rules, TM and EM by AITZ', thinking tokens; also
    Ele.Acc, Op.F1 and Step SR for Mind2Web, and episodes with every step right."""
    from models.vision.profiles import GENERAL, profile_named
    from training.grpo.examples import check_images, read_example_files
    from training.grpo.frames import parse_coordinates
    from training.grpo.predictions import check_predictions, read_predictions
    from training.step_accuracy import answers as asking
    from training.step_accuracy.report import score_answers, summarise

    check_source(policy, predictions, base_url)
    examples = read_example_files(files)[:limit]
    check_images(examples)
    steps = asking.asked_steps(examples)
    if policy is None:
        profile = GENERAL if vision_profile == "auto" else profile_named(vision_profile)
    else:
        profile = profile_for(policy, vision_profile, steps)
    space = profile.space if coordinates is None else parse_coordinates(coordinates)
    asking.check_units(steps, space)
    if predictions is not None:
        given, name = read_predictions(predictions, asking.StepAnswer), str(predictions)
        check_predictions(given, examples)
    else:
        assert policy is not None
        given, name = ask_steps(policy, profile, base_url, steps, out, max_tokens, workers, quiet=as_json), policy
    scored = score_answers(steps, given, lambda step: asking.scale_in(step, space, profile))
    score = summarise(name, scored)
    if out is not None:
        _write(out, given, scored, score, shown)
    if as_json:
        print_json(score.model_dump(mode="json"))
    else:
        _print(score, out)
    return EXIT_OK


def profile_for(spec: str, declared: str, steps: Sequence[AskedStep]) -> VisionProfile:
    """The vision profile of the model *spec*, or the *declared* one. Raises BadInput if the model reads text only and
    *steps* show screenshots."""
    from models.vision.checkpoints import vision_profile
    from models.vision.profiles import GENERAL

    profile = vision_profile(spec, declared)
    if profile is None and any(step.example.image is not None for step in steps):
        raise BadInput(f"{spec} reads text only, and these examples show screenshots: name a vision-language model")
    return profile or GENERAL


def ask_steps(
    spec: str,
    profile: VisionProfile,
    base_url: str | None,
    steps: Sequence[AskedStep],
    out: Path | None,
    max_tokens: int,
    workers: int,
    *,
    quiet: bool,
) -> dict[str, StepAnswer]:
    """Asks the model *spec* for the answers to *steps* that the folder *out* lacks; all answers, by example."""
    from training.grpo.examples import examples_digest
    from training.grpo.predictions import Asked, StoredAnswers
    from training.step_accuracy.answers import StepAnswer, answer_all

    digest = examples_digest(step.example for step in steps)
    asked = Asked(policy=spec, profile=profile.name, max_tokens=max_tokens, examples=digest)

    async def answer(model: ChatModel, missing: Sequence[AskedStep], keep: Callable[[StepAnswer], None]) -> None:
        await answer_all(model, missing, profile, keep, max_tokens=max_tokens, workers=workers)

    stored = StoredAnswers.open(out, asked, StepAnswer)
    return ask_for_missing(
        spec, base_url, steps, lambda step: step.example.name, stored, answer, noun="steps", quiet=quiet
    )


def _write(
    out: Path, given: dict[str, StepAnswer], scored: Sequence[ScoredStep], score: PlanningScore, shown: int
) -> None:
    from envs.core.atomic_write import write_atomically
    from training.step_accuracy.picturing import write_report

    with reporting_full_disk(out):
        out.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{answer.model_dump_json()}\n" for answer in given.values())
        write_atomically(out / "predictions.jsonl", lines)
        write_atomically(out / "score.json", score.model_dump_json(indent=1) + "\n")
        write_report(scored, score, out / "report.html", shown)


def _print(score: PlanningScore, out: Path | None) -> None:
    from training.step_accuracy.picturing import ELEMENT_TITLES, TITLES, element_rows, full_tasks_in_words, rows_of

    print_table(_table(score.policy, TITLES, rows_of(score)))
    if score.mind2web:
        print_table(_table("Mind2Web, means over episodes (95 %)", ELEMENT_TITLES, element_rows(score)))
    if score.full_tasks.episodes:
        stdout.print(full_tasks_in_words(score), highlight=False)
    stdout.print(f"{score.episodes} episodes · {score.unreadable} answers without an action", highlight=False)
    if out is not None:
        stdout.print(f"report: {out / 'report.html'}", highlight=False, markup=False, soft_wrap=True)


def _table(title: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> FittedTable:
    first, count, *numbers = titles
    ranked = (Column(name, right=True, drop=max(0, place - 2)) for place, name in enumerate(numbers))
    table = FittedTable(Column(first), Column(count, right=True), *ranked, title=title)
    for row in rows:
        table.row(*row)
    return table
