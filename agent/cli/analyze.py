"""`mira analyze`: explains failed episodes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agent.cli import options
from agent.cli.output import EXIT_BAD_INPUT, EXIT_OK, counting, print_json, print_problem, print_table, stdout
from agent.cli.tables import Column, FittedTable
from agent.inspection.analyze import Analyses, Problem, Survey, survey, totals
from judges.analysis import Analysis, Analyzer
from judges.analysis.meaning import ModelMeaning
from models.specs import make_model

Runs = Annotated[list[Path], typer.Argument(help="Runs, folders of runs, or traces.", metavar="RUN")]
References = Annotated[
    list[Path] | None,
    typer.Option("--references", help="Also compare with the successes of this run; repeatable."),
]
JudgeSpec = Annotated[
    str | None, typer.Option("--judge", help="Model that decides whether two actions mean the same; default: none.")
]
NAMES = {
    "stop_at_wrong_page": "A wrong stop",
    "stuck_midway": "B stuck",
    "no_reasonable_attempt": "C no attempt",
    "other": "D other",
}


def analyze(
    runs: Runs,
    references: References = None,
    judge: JudgeSpec = None,
    base_url: options.BaseUrl = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Explain failed episodes: milestones achieved, failure category, the step where the failure began, and what a
    success of the same task did instead.

    Unjudged episodes are explained if a limit, an error or a person ended them; totals exclude them.

    Exit code 2 if no trace could be read, or there are failures and none could be explained, else 0. Unreadable
    traces, and episodes about which the judge gave no verdict, are named and skipped.
    """
    spec = _spec(judge)
    options.check_base_url(base_url, () if spec is None else (spec,), "--judge")
    result = survey(runs, references or ())
    analyses, problems = asyncio.run(_explain(result, spec, base_url, quiet=as_json))
    if as_json:
        _print_json(result, analyses, problems)
    else:
        _print_tables(result, analyses)
    for problem in problems:
        print_problem(f"skipped: {problem.problem}")
    explained = analyses or not result.failed
    return EXIT_OK if result.readable and explained else EXIT_BAD_INPUT


def _spec(judge: str | None) -> str | None:
    return None if judge in (None, "none") else judge


async def _explain(
    result: Survey, judge: str | None, base_url: str | None, *, quiet: bool
) -> tuple[list[Analysis], list[Problem]]:
    model = make_model(judge, base_url=base_url) if judge is not None else None
    analyzer = Analyzer(meaning=ModelMeaning(model) if model is not None else None)
    analyses: list[Analysis] = []
    problems: list[Problem] = []
    try:
        with counting("failures explained", len(result.failed), quiet=quiet) as done:
            async for item in Analyses(result, analyzer):
                (problems if isinstance(item, Problem) else analyses).append(item)  # pyright: ignore[reportArgumentType]
                done(len(analyses) + len(problems))
    finally:
        if model is not None:
            await model.aclose()
    return analyses, [*result.problems, *problems]


def _print_json(result: Survey, analyses: Sequence[Analysis], problems: Sequence[Problem]) -> None:
    print_json(
        {
            "episodes": dict(_counts(result)),
            "undecided": result.undecided,
            "analyses": [analysis.model_dump(mode="json") for analysis in analyses],
            "totals": [total.model_dump(mode="json") for total in totals(analyses)],
            "problems": [problem.model_dump(mode="json") for problem in problems],
        }
    )


def _counts(result: Survey) -> list[tuple[str, int]]:
    """Counts episodes by outcome, with the names of `mira show`."""
    counts = [(outcome or "unfinished", count) for outcome, count in result.outcomes.most_common()]
    return [*counts, ("damaged", result.damaged)] if result.damaged else counts


def _print_tables(result: Survey, analyses: Sequence[Analysis]) -> None:
    summary = ", ".join(f"{count} {outcome}" for outcome, count in _counts(result))
    count = result.readable + result.damaged
    stdout.print(f"{count} episode{'s' * (count != 1)}: {summary or 'none'}", highlight=False)
    if result.undecided:
        stdout.print(Text(_undecided(result.undecided)))
    if not analyses:
        return
    print_table(_episodes(analyses))
    if len(analyses) == 1:
        stdout.print(Text(analyses[0].summary))
    elif totals(analyses):
        print_table(_totals(analyses))


def _undecided(count: int) -> str:
    subject = (
        "1 episode stopped by itself and was" if count == 1 else f"{count} episodes stopped by themselves and were"
    )
    return f"{subject} not judged, so failures are unknown: run with --judge MODEL, or use tasks with a checker"


def _episodes(analyses: Sequence[Analysis]) -> FittedTable:
    table = FittedTable(
        Column("episode", wrap=24),
        Column("failure"),
        Column("key step"),
        Column("left ref.", drop=1),
        Column("why", wrap=24),
    )
    for analysis in analyses:
        failure, divergence = analysis.failure, analysis.divergence
        key = f"{failure.key_step} of {analysis.steps}" if failure.key_step else "none"
        left = f"at {divergence.step}" if divergence else "not" if analysis.references else "none"
        table.row(analysis.episode_id, NAMES[failure.category], key, left, _why(analysis))
    return table


def _why(analysis: Analysis) -> str:
    """The reason, and what the nearest success did instead. Of an episode that broke the reason alone: where it was on
    its way does not explain the error."""
    divergence, reason = analysis.divergence, analysis.failure.reason
    if divergence is not None and analysis.outcome != "broken" and divergence.reason not in reason:
        reason = f"{reason}; {divergence.reason}"
    return f"not judged; {reason}" if analysis.outcome == "unjudged" else reason


def _totals(analyses: Sequence[Analysis]) -> FittedTable:
    """A table with a row per kind of site and policy, and a column per failure category."""
    counted = totals(analyses)
    rows = sorted({(row.category, row.policy) for row in counted})
    counts = Counter({(row.category, row.policy, row.failure): row.count for row in counted})
    kinds = (Column(name, right=True, wrap=7) for name in NAMES.values())
    table = FittedTable(
        Column("site", wrap=10),
        Column("policy", wrap=12),
        *kinds,
        Column("all", right=True),
        title="failures by kind of site and policy",
    )
    for category, policy in rows:
        cells = [counts[category, policy, failure] for failure in NAMES]
        table.row(category, policy, *(str(n) if n else "-" for n in cells), str(sum(cells)))
    overall = [sum(counts[category, policy, failure] for category, policy in rows) for failure in NAMES]
    table.section()
    table.row("all", "", *(str(n) for n in overall), str(sum(overall)))
    return table
