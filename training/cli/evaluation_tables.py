"""Builds the tables of `mira eval`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from agent.cli.output import printable
from agent.cli.tables import Column, FittedTable
from envs.core.errors import listed
from judges.statistics import Estimate
from training.loop.evaluation.arms import ArmsTable
from training.loop.evaluation.drawing import Phase, panel, percent
from training.loop.evaluation.milestones import MilestoneProgress
from training.loop.evaluation.summary import Evaluation, GroupRate

Part = FittedTable | Text


def evaluation(result: Evaluation) -> Iterator[Part]:
    """The tables and notes of one evaluation."""
    yield _headline(result)
    yield from _limits(result)
    yield _success(result)
    yield _pass_at(result)
    if result.total.judged > result.total.successes:
        yield _failures(result)
    yield _spent(result)
    yield from _milestones(result.milestones)


def phases(rows: Sequence[Phase]) -> Iterator[Part]:
    """A table with one row per phase, and notes."""
    numbers = (("success", 0), ("stuck midway", 3), ("diagonal", 2), ("all done", 1))
    columns = (Column(name, right=True, drop=drop, wrap=9) for name, drop in numbers)
    table = FittedTable(Column("phase", wrap=12), *columns, title="by phase")
    for row in rows:
        cells = panel(row)
        table.row(cells.name, cells.success, cells.stuck, cells.diagonal, cells.all_done)
    yield table
    for row in rows:
        for line in _limits(row.evaluation):
            yield Text(f"{row.name}: ", "dim").append_text(line)


def arms(table: ArmsTable) -> Iterator[Part]:
    """Means over seeds, and differences to the baseline with three intervals each."""
    unit = "instances" if table.cluster == "task" else f"instances of {table.clusters} templates, resampled by template"
    means = FittedTable(
        Column("arm", wrap=20),
        Column("seeds", right=True, drop=1),
        Column("success", right=True),
        Column("minus B", right=True, wrap=16),
        title=f"{table.tasks} task {unit}; B is {table.baseline}",
    )
    for arm in table.arms:
        change = "" if arm.change is None else _signed(arm.change.both)
        means.row(arm.arm, str(len(arm.seeds)), percent(arm.success), change)
    yield means
    for arm in table.arms:
        by_seed = ", ".join(f"{seed.success:.1%}" for seed in arm.seeds)
        after = "" if arm.phase is None else f" after phase {arm.phase}"
        yield Text(f"{arm.arm}{after}: {arm.episodes} episodes, by seed {by_seed}", "dim")
        if arm.unknown:
            yield Text(f"{arm.arm}: {arm.unknown} broken or not judged, excluded from rates", "yellow")
        if arm.expert is not None:
            yield Text(f"{arm.arm}: {arm.expert.text}: its success is not the policy's alone", "yellow")
        if arm.change is not None:
            over = f"tasks alone {_signed(arm.change.tasks)}; seeds alone {_signed(arm.change.seeds)}"
            yield Text(f"{arm.arm} minus {table.baseline}, over {over}", "dim")
    if table.left_out:
        yield Text(f"excluded, because not judged in every arm and seed: {printable(listed(table.left_out))}", "yellow")


def _headline(result: Evaluation) -> Text:
    outcomes = ", ".join(
        f"{count} {name}" for name, count in sorted(result.outcomes.items(), key=lambda pair: -pair[1])
    )
    policies = printable(listed(result.policies))
    return Text(f"{result.episodes} episodes of {result.tasks} task instances by {policies}: {outcomes}")


def _limits(result: Evaluation) -> Iterator[Text]:
    """Notes on excluded episodes, several policies, and unreadable traces."""
    aside = {"broken": result.total.broken, "not judged": result.total.unjudged, "unfinished": result.unfinished}
    text = ", ".join(f"{count} {name}" for name, count in aside.items() if count)
    if text:
        yield Text(f"excluded from rates: {text}", "yellow")
    if result.degraded:
        yield Text(
            f"planner or rater failed in {result.degraded} of {result.total.judged} judged episodes, which count"
        )
    if result.expert is not None:
        yield Text(f"{result.expert.text}: the success is not the policy's alone", "yellow")
    if len(result.policies) > 1:
        yield Text("several policies are counted together: compare them with --arm", "yellow")
    for line in result.damaged:
        yield Text(f"cannot be read: {printable(line)}", "yellow")


def _success(result: Evaluation) -> FittedTable:
    table = _table("success of judged episodes, 95 % Wilson", ("", "judged", "success", "broken"))
    _add_rate(table, result.total)
    for title, groups in (
        ("by category", result.by_category),
        ("by split", result.by_split),
        ("by task", result.by_task),
    ):
        if groups:
            table.section()
            table.row(Text(title, "dim"), "", "", "")
        for group in groups:
            _add_rate(table, group)
    return table


def _add_rate(table: FittedTable, group: GroupRate) -> None:
    table.row(group.name, str(group.judged), percent(group.success), str(group.broken or ""))


def _pass_at(result: Evaluation) -> FittedTable:
    table = _table(
        "pass@k: at least one of k attempts succeeds, 95 % over tasks", ("", "pass@k", "tasks", "too few attempts")
    )
    for item in result.pass_at:
        value = item.value.why_not if item.value.value is None else percent(item.value)
        table.row(f"pass@{item.k}", value, str(item.tasks), str(item.too_few or ""))
    return table


def _failures(result: Evaluation) -> FittedTable:
    table = _table("failures", ("category", "episodes", "of failed", "of judged"))
    for item in result.failures:
        table.row(item.category, str(item.episodes), percent(item.share), percent(item.of_judged))
    return table


def _spent(result: Evaluation) -> FittedTable:
    table = _table("per judged episode", ("", "mean, 95 % over tasks", "median"))
    for name, spent in result.spent.items():
        table.row(name, _plain(spent.mean), "-" if spent.median is None else f"{spent.median:,.1f}")
    return table


def _milestones(progress: MilestoneProgress) -> Iterator[Part]:
    left_out = ", ".join(f"{count} × {reason}" for reason, count in progress.left_out.items())
    if left_out:
        yield Text(f"without milestone data: {left_out}", "dim")
    if not progress.traces:
        return
    table = _table(f"milestones of {progress.traces} episodes", ("k", "episodes", "done", "mean step"))
    for item in progress.milestones:
        when = "-" if item.mean_step is None else f"{item.mean_step:.1f}"
        table.row(str(item.k), str(item.traces), percent(item.done), when)
    yield table
    order = "-" if progress.order is None else f"{progress.order:+.2f}"
    yield Text(f"diagonal {percent(progress.diagonal)}, order {order}, all done {percent(progress.all_done)}")


def _table(title: str, columns: Sequence[str]) -> FittedTable:
    """A table with names in the first column and numbers in the others, the last of which is omitted first."""
    first, *numbers = columns
    right = (Column(name, right=True, wrap=10, drop=place) for place, name in enumerate(numbers))
    return FittedTable(Column(first, wrap=24), *right, title=title)


def _signed(estimate: Estimate) -> str:
    """Formats a difference of shares in percentage points."""
    if estimate.value is None:
        return estimate.why_not
    if estimate.low is None or estimate.high is None:
        return f"{100 * estimate.value:+.1f} ({estimate.why_not})"
    return f"{100 * estimate.value:+.1f} ({100 * estimate.low:+.1f} to {100 * estimate.high:+.1f})"


def _plain(estimate: Estimate) -> str:
    if estimate.value is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:,.1f} ({estimate.why_not})"
    return f"{estimate.value:,.1f} ({estimate.low:,.1f} to {estimate.high:,.1f})"
