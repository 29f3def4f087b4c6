"""`mira quality`: measures how well the milestones of runs predict success."""

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

Runs = Annotated[list[Path], typer.Argument(help="Runs, folders of runs, or traces.", metavar="RUN")]

_NAMES = {"checks": "checkers at the end", "rater": "the run's rater"}


def quality(
    runs: Runs,
    without_last: Annotated[
        bool,
        typer.Option("--without-last", help="Exclude each trace's last milestone, which is often the outcome itself."),
    ] = False,
    resamples: Annotated[int, typer.Option(min=100, max=100_000, help="Number of bootstrap resamples.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")] = 0,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Measure how well milestones predict success, next to the values of the MiRA paper (§5.1)."""
    files = discover_traces(runs)
    with counting("traces", len(files), quiet=as_json) as progress:
        result = runs_quality(files, without_last=without_last, resamples=resamples, seed=seed, on_progress=progress)
    if len(result.damaged) == result.read:
        raise BadInput(f"no trace could be read: {result.damaged[0]}")
    if as_json:
        print_json(result.model_dump(mode="json") | {"paper": PAPER._asdict()})
    else:
        _show(result)
    return 0


def _show(result: RunsQuality) -> None:
    for line in _left_out(result):
        stdout.print(Text(line, "dim"), soft_wrap=True)
    if not result.sources:
        stdout.print("nothing to measure: no trace has both milestones and an outcome by a checker")
        return
    print_table(_numbers(result.sources))
    if result.agreement is not None and result.agreement.milestones:
        agree = result.agreement
        stdout.print(
            f"rater and checkers agree on {_short(agree.same)} of {agree.milestones} milestones; "
            f"{agree.only_rater} done only according to the rater, {agree.only_checks} only according to the checkers",
            highlight=False,
        )
    for curve in result.sources[0].calibration:
        print_table(_calibration(curve))
    _show_uninformative(result.sources[0])


def _left_out(result: RunsQuality) -> list[str]:
    lines = [f"{result.read} traces read"]
    lines += [f"left out: {count} × {reason}" for reason, count in result.left_out.items()]
    return lines + [f"cannot be read: {line}" for line in result.damaged]


def _numbers(sources: tuple[Quality, ...]) -> FittedTable:
    names = (f"{_NAMES[source.source]}\n{source.traces} traces\n{source.successes} successful" for source in sources)
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
        table.row(label, *(_short(getattr(source, name)) for source in sources), f"{getattr(PAPER, name)}")
    table.row("p of τ", *(_p(source.tau_p) for source in sources), "< 0.001")
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


def _show_uninformative(source: Quality) -> None:
    uninformative = [row for row in source.milestones if row.tells_nothing]
    stdout.print(
        f"{len(uninformative)} of {len(source.milestones)} milestones were the same in every trace of their task"
    )
    if not uninformative:
        return
    table = FittedTable(
        Column("task", wrap=24), Column("milestone", wrap=24), Column("done"), Column("traces", right=True, drop=1)
    )
    for row in uninformative:
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
