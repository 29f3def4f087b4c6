"""`mira eval planning`: how often a model takes the right next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.output import EXIT_OK, print_json, print_table, stdout
from agent.cli.tables import Column, FittedTable
from envs.core.errors import BadInput
from training.cli.asking import Family, Limit, Policy, Predictions, Workers, ask_for_missing, check_source
from training.cli.messages import reporting_full_disk

if TYPE_CHECKING:
    from judges.statistics import Estimate
    from models.base import ChatModel
    from models.vision.profiles import VisionProfile
    from training.step_accuracy.answers import AskedStep, StepAnswer
    from training.step_accuracy.report import PlanningScore, StepMetrics


def evaluate_planning(
    files: Annotated[list[Path], typer.Argument(help="JSON Lines files of step examples.", metavar="EXAMPLES")],
    policy: Policy = None,
    predictions: Predictions = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for predictions.jsonl and score.json; an interrupted one continues."),
    ] = None,
    vision_profile: Family = "auto",
    coordinates: Annotated[
        str | None,
        typer.Option(
            help="Units that the prompts ask for: pixels, resized, thousand or unit; default: those of the model's "
            "family, pixels for predictions."
        ),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest visible answer in tokens.")] = 512,
    limit: Limit = None,
    workers: Workers = 1,
    base_url: options.BaseUrl = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Evaluate a model on single steps: Type, GR and SR by OS-Atlas' rules, TM and EM by AITZ', thinking tokens; also
    Ele.Acc, Op.F1 and Step SR for Mind2Web, and episodes with every step right."""
    from models.vision.checkpoints import vision_profile as profile_of
    from models.vision.profiles import GENERAL, profile_named
    from training.grpo.examples import check_images, read_example_files
    from training.grpo.frames import parse_coordinates
    from training.grpo.predictions import check_predictions, read_predictions
    from training.step_accuracy import answers as asking
    from training.step_accuracy.report import score_answers, summarise

    check_source(policy, predictions)
    examples = read_example_files(files)[:limit]
    check_images(examples)
    steps = asking.asked_steps(examples)
    if policy is None:
        profile = GENERAL if vision_profile == "auto" else profile_named(vision_profile)
    else:
        profile = profile_of(policy, vision_profile)
    if profile is None:
        if any(step.example.image is not None for step in steps):
            raise BadInput(f"--policy: {policy} reads text only, and these examples show screenshots")
        profile = GENERAL
    space = profile.space if coordinates is None else parse_coordinates(coordinates)
    asking.check_units(steps, space)
    if predictions is not None:
        given, name = read_predictions(predictions, asking.StepAnswer), str(predictions)
        check_predictions(given, examples)
    else:
        assert policy is not None
        given, name = _ask(policy, profile, base_url, steps, out, max_tokens, workers, quiet=as_json), policy
    score = summarise(name, score_answers(steps, given, lambda step: asking.scale_in(step, space, profile)))
    if out is not None:
        _write(out, given, score)
    if as_json:
        print_json(score.model_dump(mode="json"))
    else:
        _print(score, out)
    return EXIT_OK


def _ask(
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
    """Asks the model for what *out* lacks."""
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


def _write(out: Path, given: dict[str, StepAnswer], score: PlanningScore) -> None:
    from envs.core.atomic_write import write_atomically

    with reporting_full_disk(out):
        out.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{answer.model_dump_json()}\n" for answer in given.values())
        write_atomically(out / "predictions.jsonl", lines)
        write_atomically(out / "score.json", score.model_dump_json(indent=1) + "\n")


def _print(score: PlanningScore, out: Path | None) -> None:
    titles = ("Type", "GR", "SR (95 %)", "by episode", "TM", "EM", "thought\ntokens")
    ranked = (Column(title, right=True, drop=max(0, place - 2)) for place, title in enumerate(titles))
    table = FittedTable(Column("steps"), Column("n", right=True), *ranked, title=score.policy)
    rows = {"all": score.overall, **score.by_platform, **score.by_group, **score.by_type}
    for name, metrics in rows.items():
        table.row(name, str(metrics.steps), *_cells(metrics))
    print_table(table)
    if score.mind2web:
        print_table(_mind2web(score))
    tasks = score.full_tasks
    if tasks.episodes:
        shares = f"{_shown(tasks.success)} by SR, {_shown(tasks.exact_match)} by EM"
        stdout.print(f"full task success: {shares} of {tasks.episodes} episodes", highlight=False)
    stdout.print(f"{score.episodes} episodes · {score.unreadable} answers without an action", highlight=False)
    if out is not None:
        stdout.print(f"predictions: {out / 'predictions.jsonl'}", highlight=False, markup=False, soft_wrap=True)


def _cells(metrics: StepMetrics) -> tuple[str, ...]:
    return (
        _percent(metrics.type.wilson),
        _percent(metrics.grounding.wilson),
        f"{_percent(metrics.success.wilson)}{_interval(metrics.success.wilson)}",
        _interval(metrics.success.by_episode).strip() or "-",
        _percent(metrics.type_match.wilson),
        _percent(metrics.exact_match.wilson),
        "-" if metrics.thought_tokens.value is None else f"{metrics.thought_tokens.value:.1f}",
    )


def _mind2web(score: PlanningScore) -> FittedTable:
    titles = ("Ele.Acc", "Op.F1", "Step SR", "SR")
    ranked = (Column(title, right=True, drop=max(0, place - 2)) for place, title in enumerate(titles))
    title = "Mind2Web, means over episodes (95 %)"
    table = FittedTable(Column("steps"), Column("n", right=True), *ranked, title=title)
    for name, metrics in score.mind2web.items():
        means = (metrics.macro_element, metrics.macro_operation_f1, metrics.macro_success, metrics.task_success)
        table.row(name, str(metrics.steps), *map(_shown, means))
    return table


def _shown(estimate: Estimate) -> str:
    return f"{_percent(estimate)}{_interval(estimate)}"


def _percent(estimate: Estimate) -> str:
    return "-" if estimate.value is None else f"{estimate.value:.1%}"


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f" ({100 * estimate.low:.0f}-{100 * estimate.high:.0f})"
