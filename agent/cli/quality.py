"""`mira quality`: how much the milestones of runs say about success."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agent.cli import options
from agent.cli.output import counting, print_json, print_table, stdout
from agent.cli.tables import Column, FittedTable
from agent.inspection.quality import RunsQuality, runs_quality
from agent.run.discover_traces import discover_traces
from envs.core.errors import BadInput
from judges.statistics import Estimate
from judges.subgoal_quality import PAPER, Calibration, Quality

Runs = Annotated[list[Path], typer.Argument(help="Folders of runs, folders of traces, or traces.", metavar="RUN…")]

_NAMES = {"checks": "checkers at the end", "rater": "the run's rater"}


def quality(
    runs: Runs,
    without_last: Annotated[
        bool, typer.Option("--without-last", help="Leave out each trace's last milestone, often the outcome itself.")
    ] = False,
    resamples: Annotated[int, typer.Option(min=100, max=100_000, help="Of the bootstrap.")] = 2000,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Measures subgoal quality: do milestones done tell success, beside the numbers of the MiRA paper (§5.1)?"""
    files = discover_traces(runs)
    with counting("traces", len(files), quiet=as_json) as tell:
        found = runs_quality(files, without_last=without_last, resamples=resamples, seed=seed, tell=tell)
    if len(found.damaged) == found.read:
        raise BadInput(f"no trace could be read, so there is nothing to measure: {found.damaged[0]}")
    if as_json:
        print_json(found.model_dump(mode="json") | {"paper": PAPER._asdict()})
    else:
        _show(found)
    return 0


def _show(found: RunsQuality) -> None:
    for line in _left_out(found):
        stdout.print(Text(line, "dim"), soft_wrap=True)
    if not found.sources:
        stdout.print("no trace has both milestones and an outcome by a checker: nothing to measure")
        return
    print_table(_numbers(found.sources))
    if found.agreement is not None and found.agreement.milestones:
        agree = found.agreement
        stdout.print(
            f"rater and checkers agree on {_short(agree.same)} of {agree.milestones} milestones; "
            f"{agree.only_rater} done for the rater alone, {agree.only_checks} for the checkers alone",
            highlight=False,
        )
    for curve in found.sources[0].calibration:
        print_table(_calibration(curve))
    _show_silent(found.sources[0])


def _left_out(found: RunsQuality) -> list[str]:
    lines = [f"{found.read} traces read"]
    lines += [f"left out: {count} × {reason}" for reason, count in found.left_out.items()]
    return lines + [f"cannot be read: {line}" for line in found.damaged]


def _numbers(sources: tuple[Quality, ...]) -> FittedTable:
    names = (f"{_NAMES[one.source]}\n{one.traces} traces\n{one.successes} successful" for one in sources)
    table = FittedTable(
        Column(""),
        *(Column(name, right=True, wrap=22) for name in names),
        Column("paper", right=True, drop=1),
        title="all milestones done ⇔ success; progress as a score; 95 % intervals",
    )
    for name, label in (
        ("precision", "precision"),
        ("recall", "recall"),
        ("f1", "F1"),
        ("auroc", "AUROC of progress"),
        ("tau", "Kendall's τ"),
    ):
        table.row(label, *(_short(getattr(one, name)) for one in sources), f"{getattr(PAPER, name)}")
    table.row("p of τ", *(_p(one.tau_p) for one in sources), "< 0.001")
    return table


def _calibration(curve: Calibration) -> FittedTable:
    of = "any number of" if curve.of is None else str(curve.of)
    rises = {True: "strictly increasing", False: "not strictly increasing", None: "one point"}[
        curve.strictly_increasing
    ]
    columns = (Column(name, right=True) for name in ("m", "traces", "success", "95 % Wilson"))
    table = FittedTable(*columns, title=f"P(success | m of {of} milestones done): {rises}")
    for point in curve.points:
        rate = point.success
        low_high = f"{rate.low:.0%} to {rate.high:.0%}" if rate.low is not None and rate.high is not None else "-"
        table.row(str(point.done), str(point.traces), f"{rate.value or 0:.0%}", low_high)
    return table


def _show_silent(one: Quality) -> None:
    silent = [row for row in one.milestones if row.tells_nothing]
    stdout.print(f"{len(silent)} of {len(one.milestones)} milestones were the same in every trace of their task")
    if not silent:
        return
    table = FittedTable(
        Column("task", wrap=24), Column("milestone", wrap=24), Column("done"), Column("traces", right=True, drop=1)
    )
    for row in silent:
        table.row(row.task, row.text or row.milestone, row.tells_nothing or "", str(row.traces))
    print_table(table)


def _short(estimate: Estimate) -> str:
    if estimate.value is None:
        return estimate.why_not
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.4f} ({estimate.why_not})"
    return f"{estimate.value:.4f} ({estimate.low:.3f}-{estimate.high:.3f})"


def _p(p: float | None) -> str:
    return "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"
