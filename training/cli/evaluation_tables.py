"""The tables of `mira eval`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from agent.cli.output import printable
from agent.cli.tables import Column, FittedTable
from judges.statistics import Estimate
from training.loop.evaluation.arms import ArmsTable
from training.loop.evaluation.drawing import Phase, panel, percent
from training.loop.evaluation.milestones import MilestoneProgress
from training.loop.evaluation.summary import Evaluation, GroupRate

_SHOWN = 5

Part = FittedTable | Text


def evaluation(found: Evaluation) -> Iterator[Part]:
    """All that one report says."""
    yield _headline(found)
    yield from _limits(found)
    yield _success(found)
    yield _pass_at(found)
    if found.total.judged > found.total.successes:
        yield _failures(found)
    yield _spent(found)
    yield from _milestones(found.milestones)


def phases(rows: Sequence[Phase]) -> Iterator[Part]:
    """A row for each phase."""
    numbers = (("success", 0), ("stuck midway", 3), ("diagonal", 2), ("all done", 1))
    columns = (Column(name, right=True, drop=drop, wrap=9) for name, drop in numbers)
    table = FittedTable(Column("phase", wrap=12), *columns, title="by phase")
    for row in rows:
        told = panel(row)
        table.row(told.name, told.success, told.stuck, told.diagonal, told.all_done)
    yield table
    for row in rows:
        for line in _limits(row.evaluation):
            yield Text(f"{row.name}: ", "dim").append_text(line)


def arms(table: ArmsTable) -> Iterator[Part]:
    """Means over seeds, and the difference to the baseline with its three intervals."""
    drawn = "instances" if table.cluster == "task" else f"instances of {table.clusters} templates, drawn as templates"
    told = FittedTable(
        Column("arm", wrap=20),
        Column("seeds", right=True, drop=1),
        Column("success", right=True),
        Column("minus B", right=True, wrap=16),
        title=f"{table.tasks} task {drawn}; B is {table.baseline}",
    )
    for arm in table.arms:
        change = "" if arm.change is None else _signed(arm.change.both)
        told.row(arm.arm, str(len(arm.seeds)), percent(arm.success), change)
    yield told
    for arm in table.arms:
        by_seed = ", ".join(f"{one.success:.1%}" for one in arm.seeds)
        after = "" if arm.phase is None else f" after phase {arm.phase}"
        yield Text(f"{arm.arm}{after}: {arm.episodes} episodes, by seed {by_seed}", "dim")
        if arm.unknown:
            yield Text(f"{arm.arm}: {arm.unknown} broken or not judged, in no rate", "yellow")
        if arm.change is not None:
            over = f"tasks alone {_signed(arm.change.tasks)}; seeds alone {_signed(arm.change.seeds)}"
            yield Text(f"{arm.arm} minus {table.baseline}, over {over}", "dim")
    if table.left_out:
        yield Text(f"not judged in every arm and seed, in no number: {_listed(table.left_out)}", "yellow")


def _headline(found: Evaluation) -> Text:
    outcomes = ", ".join(f"{count} {name}" for name, count in sorted(found.outcomes.items(), key=lambda pair: -pair[1]))
    who = _listed(found.policies)
    return Text(f"{found.episodes} episodes of {found.tasks} task instances by {who}: {outcomes}")


def _limits(found: Evaluation) -> Iterator[Text]:
    """What is in no rate, and what makes a rate mean less."""
    aside = {"broken": found.total.broken, "not judged": found.total.unjudged, "without an end": found.unfinished}
    told = ", ".join(f"{count} {name}" for name, count in aside.items() if count)
    if told:
        yield Text(f"in no rate: {told}", "yellow")
    if len(found.policies) > 1:
        yield Text("several policies are counted together: compare them with --arm", "yellow")
    for line in found.damaged:
        yield Text(f"cannot be read: {printable(line)}", "yellow")


def _success(found: Evaluation) -> FittedTable:
    table = _table("success of judged episodes, 95 % Wilson", ("", "judged", "success", "broken"))
    _add_rate(table, found.total)
    for title, groups in (("by category", found.by_category), ("by split", found.by_split), ("by task", found.by_task)):
        if groups:
            table.section()
            table.row(Text(title, "dim"), "", "", "")
        for group in groups:
            _add_rate(table, group)
    return table


def _add_rate(table: FittedTable, group: GroupRate) -> None:
    table.row(group.name, str(group.judged), percent(group.success), str(group.broken or ""))


def _pass_at(found: Evaluation) -> FittedTable:
    table = _table("one of k attempts succeeds, 95 % over tasks", ("", "pass@k", "tasks", "too few attempts"))
    for one in found.pass_at:
        value = one.value.why_not if one.value.value is None else percent(one.value)
        table.row(f"pass@{one.k}", value, str(one.tasks), str(one.too_few or ""))
    return table


def _failures(found: Evaluation) -> FittedTable:
    table = _table("failures", ("category", "episodes", "of failed", "of judged"))
    for one in found.failures:
        table.row(one.category, str(one.episodes), percent(one.share), percent(one.of_judged))
    return table


def _spent(found: Evaluation) -> FittedTable:
    table = _table("a judged episode", ("", "mean, 95 % over tasks", "median"))
    for name, spent in found.spent.items():
        table.row(name, _plain(spent.mean), "-" if spent.median is None else f"{spent.median:,.1f}")
    return table


def _milestones(progress: MilestoneProgress) -> Iterator[Part]:
    left_out = ", ".join(f"{count} × {reason}" for reason, count in progress.left_out.items())
    if left_out:
        yield Text(f"tell nothing of milestones: {left_out}", "dim")
    if not progress.traces:
        return
    table = _table(f"milestones of {progress.traces} episodes", ("k", "episodes", "done", "mean step"))
    for one in progress.milestones:
        when = "-" if one.mean_step is None else f"{one.mean_step:.1f}"
        table.row(str(one.k), str(one.traces), percent(one.done), when)
    yield table
    order = "-" if progress.order is None else f"{progress.order:+.2f}"
    yield Text(f"diagonal {percent(progress.diagonal)}, order {order}, all done {percent(progress.all_done)}")


def _table(title: str, columns: Sequence[str]) -> FittedTable:
    """Names to the left, numbers to the right of them, the last one given up first where there is no room."""
    first, *numbers = columns
    right = (Column(name, right=True, wrap=10, drop=place) for place, name in enumerate(numbers))
    return FittedTable(Column(first, wrap=24), *right, title=title)


def _signed(estimate: Estimate) -> str:
    """A difference of shares in points of a hundred."""
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


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return printable(", ".join(names[:_SHOWN])) + more
