"""`mira compare`: compares two runs on the same tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agent.cli import options
from agent.cli.output import print_json, print_table, stdout
from agent.cli.tables import Column, FittedTable
from agent.inspection.compare import MEASURES, Arm, Comparison, Difference
from agent.inspection.compare import compare as compare_runs
from agent.run.discover_traces import discover_traces
from envs.core.errors import BadInput, listed
from judges.statistics import Estimate

RunA = Annotated[Path, typer.Argument(help="Baseline run.", metavar="RUN_A")]
RunB = Annotated[Path, typer.Argument(help="Run to compare with the baseline.", metavar="RUN_B")]


def compare(
    run_a: RunA,
    run_b: RunB,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")] = 0,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Compare two runs: success with a paired test on common tasks, pass@k, failures, steps, tokens, time, cost."""
    result = compare_runs(discover_traces([run_a]), discover_traces([run_b]), seed=seed)
    for run, arm in ((run_a, result.a), (run_b, result.b)):
        if len(arm.damaged) == arm.episodes:
            raise BadInput(f"no trace of {str(run)!r} could be read: {arm.damaged[0]}")
    if as_json:
        print_json(result.model_dump(mode="json"))
        return 0
    print_table(_arms(result))
    if result.success is not None:
        print_table(_differences(result))
        stdout.print(Text(_test(result)))
    for line in _limits(result):
        stdout.print(Text(line, "dim"))
    return 0


def _arms(result: Comparison) -> FittedTable:
    arms = [Column(f"{name}  {arm.policy}", right=True, wrap=18) for name, arm in (("A", result.a), ("B", result.b))]
    table = FittedTable(Column(""), *arms)
    both = (result.a, result.b)
    table.row("episodes (tasks)", *(f"{arm.episodes} ({arm.tasks})" for arm in both))
    table.row("success, 95 % Wilson", *(percent(arm.success) for arm in both))
    for k in sorted({item.k for arm in both for item in arm.pass_at}):
        table.row(f"pass@{k}", *(_pass(arm, k) for arm in both))
    for outcome in ("success", "failure", "broken", "unjudged", "unfinished"):
        if any(outcome in arm.outcomes for arm in both):
            table.row(outcome, *(str(arm.outcomes.get(outcome, 0)) for arm in both))
    for category in sorted({name for arm in both for name in arm.failures}):
        table.row(Text(f"  {category}"), *(_share(arm, category) for arm in both))
    if any(arm.degraded for arm in both):
        table.row("planner or rater failed", *(str(arm.degraded) for arm in both))
    return table


def _differences(result: Comparison) -> FittedTable:
    title = f"means over the {result.paired.tasks} tasks judged in both"
    numbers = (Column(name, right=True, wrap=wrap) for name, wrap in (("A", 0), ("B", 0), ("B - A, 95 % interval", 18)))
    table = FittedTable(Column(""), *numbers, title=title)
    if result.success is not None:
        table.row("success", *_cells(result.success, 3))
    for measure in MEASURES:
        table.row(measure, *_cells(result.spent[measure], 4 if measure == "cost_usd" else 2))
    return table


def _test(result: Comparison) -> str:
    paired = result.paired
    p = "-" if paired.p is None else "< 0.001" if paired.p < 0.001 else f"= {paired.p:.3f}"
    return f"B better on {paired.only_b} tasks, A on {paired.only_a}: p {p} ({paired.method}, two-sided)"


def _limits(result: Comparison) -> list[str]:
    """Lists what cannot be compared, or limits the comparison."""
    lines: list[str] = []
    if result.success is None:
        lines.append("no task was judged in both runs, so success is not tested")
    for name, tasks in (("A", result.only_in_a), ("B", result.only_in_b)):
        if tasks:
            lines.append(f"judged only in {name}, not tested: {listed(tasks)}")
    for name, arm in (("A", result.a), ("B", result.b)):
        unknown = {o: n for o, n in arm.outcomes.items() if o not in ("success", "failure")}
        if unknown:
            counts = ", ".join(f"{count} {outcome}" for outcome, count in unknown.items())
            lines.append(f"excluded from rates of {name}: {counts}")
        if arm.expert is not None:
            lines.append(f"{arm.expert.text} in {name}: its success is not the policy's alone")
        lines += [f"cannot be read in {name}: {line}" for line in arm.damaged]
    lines += [f"different setting: {name} is {a!r} in A, {b!r} in B" for name, (a, b) in result.unlike.items()]
    return lines


def _cells(item: Difference, digits: int) -> tuple[str, str, str]:
    change = item.change
    text = f"{change.value:+.{digits}f}"
    if change.low is not None and change.high is not None:
        text += f" ({change.low:+.{digits}f} to {change.high:+.{digits}f})"
    return f"{item.a:.{digits}f}", f"{item.b:.{digits}f}", text


def _pass(arm: Arm, k: int) -> str:
    for item in arm.pass_at:
        if item.k == k:
            return f"{item.value:.1%}" + (f" ({item.tasks} tasks)" if item.tasks != arm.tasks else "")
    return "too few attempts"


def _share(arm: Arm, category: str) -> str:
    failed = sum(arm.failures.values())
    count = arm.failures.get(category, 0)
    return f"{count} ({count / failed:.0%})" if failed else "0"


def percent(estimate: Estimate) -> str:
    """Formats a share with its interval."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate.why_not
    return f"{estimate.value:.1%} ({estimate.low:.0%}-{estimate.high:.0%})"
