"""`mira analyze`: why episodes failed."""

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

Runs = Annotated[list[Path], typer.Argument(help="Runs, folders of runs, or traces.")]
References = Annotated[
    list[Path] | None,
    typer.Option("--references", help="More runs whose successes are compared with; repeat for more."),
]
JudgeSpec = Annotated[
    str | None, typer.Option("--judge", help="Model that is asked where two actions may mean the same; default none.")
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
    """Says of each failed episode what was achieved, which kind of failure it is, and at which step it began.

    One that nobody judged is explained where it was cut off by a limit, an error or a person, and is in no total.

    Exit code 2 if no trace could be read, else 0; a trace that cannot be read is named and passed over.
    """
    found = survey(runs, references or ())
    analyses, problems = asyncio.run(_explained(found, _spec(judge), base_url, quiet=as_json))
    if as_json:
        _print_json(found, analyses, problems)
    else:
        _print_tables(found, analyses)
    for problem in problems:
        print_problem(f"passed over: {problem.problem}")
    return EXIT_OK if found.readable else EXIT_BAD_INPUT


def _spec(judge: str | None) -> str | None:
    return None if judge in (None, "none") else judge


async def _explained(
    found: Survey, judge: str | None, base_url: str | None, *, quiet: bool
) -> tuple[list[Analysis], list[Problem]]:
    model = make_model(judge, base_url=base_url) if judge is not None else None
    analyzer = Analyzer(meaning=ModelMeaning(model) if model is not None else None)
    analyses: list[Analysis] = []
    problems: list[Problem] = []
    try:
        with counting("failures explained", len(found.failed), quiet=quiet) as done:
            async for one in Analyses(found, analyzer):
                (problems if isinstance(one, Problem) else analyses).append(one)  # pyright: ignore[reportArgumentType]
                done(len(analyses) + len(problems))
    finally:
        if model is not None:
            await model.aclose()
    return analyses, [*found.problems, *problems]


def _print_json(found: Survey, analyses: Sequence[Analysis], problems: Sequence[Problem]) -> None:
    print_json(
        {
            "episodes": dict(_counts(found)),
            "undecided": found.undecided,
            "analyses": [one.model_dump(mode="json") for one in analyses],
            "totals": [total.model_dump(mode="json") for total in totals(analyses)],
            "problems": [problem.model_dump(mode="json") for problem in problems],
        }
    )


def _counts(found: Survey) -> list[tuple[str, int]]:
    """Episodes by outcome, as `mira show` names them."""
    counts = [(outcome or "unfinished", count) for outcome, count in found.outcomes.most_common()]
    return [*counts, ("damaged", found.damaged)] if found.damaged else counts


def _print_tables(found: Survey, analyses: Sequence[Analysis]) -> None:
    told = ", ".join(f"{count} {outcome}" for outcome, count in _counts(found))
    stdout.print(f"{found.readable + found.damaged} episodes: {told or 'none'}", highlight=False)
    if found.undecided:
        stdout.print(Text(_undecided(found.undecided)))
    if not analyses:
        return
    print_table(_episodes(analyses))
    if len(analyses) == 1:
        stdout.print(Text(analyses[0].summary))
    elif totals(analyses):
        print_table(_totals(analyses))


def _undecided(count: int) -> str:
    what = "1 episode ended itself and was" if count == 1 else f"{count} episodes ended themselves and were"
    return f"{what} not judged, so nothing is known to explain: play with --judge MODEL, or a task with a checker"


def _episodes(analyses: Sequence[Analysis]) -> FittedTable:
    table = FittedTable(
        Column("episode", wrap=24),
        Column("failure"),
        Column("key step"),
        Column("left ref.", drop=1),
        Column("why", wrap=24),
    )
    for one in analyses:
        failure, gone = one.failure, one.divergence
        key = f"{failure.key_step or '-'} of {one.steps}"
        left = f"at {gone.step}" if gone else "not" if one.references else "none"
        why = f"not judged; {failure.reason}" if one.outcome == "unjudged" else failure.reason
        table.row(one.episode_id, NAMES[failure.category], key, left, why)
    return table


def _totals(analyses: Sequence[Analysis]) -> FittedTable:
    """Kinds of site and policies down, categories of failure across."""
    found = totals(analyses)
    rows = sorted({(row.category, row.policy) for row in found})
    counts = Counter({(row.category, row.policy, row.failure): row.count for row in found})
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
