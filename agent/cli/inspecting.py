"""`mira show`, `tasks`, `models`, `doctor`: what reads and lists, and plays nothing."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from agent.cli import options
from agent.cli.output import print_json, printable, stderr, stdout
from agent.gathering import gather
from agent.listing import EpisodeRow, episode_row
from agent.refusals import blocked_in, name_of, print_refused, what_of
from envs.blocked import summed
from envs.languages import language
from envs.trace_store import Trace, read_trace
from models.specs import statuses

Where = Annotated[list[Path], typer.Argument(help="Runs, folders of runs, or traces.", metavar="RUN…")]

_UNWRAPPED_ROWS = 100
"""Longer lists are written line by line: measuring thousands of cells takes longer than reading the traces."""


def show(where: Where, as_json: options.Json = False) -> int:
    """Lists the episodes of runs, or the steps of one trace."""
    if len(where) == 1 and where[0].is_file():
        trace = read_trace(where[0])
        return _show_json(trace) if as_json else _show_trace(trace)
    rows = [episode_row(file.path) for file in gather(where)]
    if as_json:
        print_json([row.model_dump(mode="json") for row in rows])
    else:
        _show_rows(rows, runs=len({row.run for row in rows}) > 1)
    return 0


def tasks(
    suite: Annotated[str, typer.Option(help="Which suite to list.")] = "miniwob",
    split: options.Split = None,
    as_json: options.Json = False,
) -> int:
    """Lists the tasks of a suite."""
    infos = options.suite_tasks(suite, split)
    if as_json:
        print_json([info.model_dump(mode="json") for info in infos])
        return 0
    columns = {
        "task": [info.name for info in infos],
        "category": [info.category for info in infos],
        "kind": [info.kind for info in infos],
        "difficulty": [info.difficulty for info in infos],
        "split": [info.split for info in infos],
        "checker": ["yes" if info.has_checker else "no" for info in infos],
        "milestones": [str(info.milestones or "-") for info in infos],
    }
    told = {name: cells for name, cells in columns.items() if any(cells)}
    table = Table(header_style="bold")
    for name in told:
        table.add_column(name, no_wrap=name == "task")
    for cells in zip(*told.values(), strict=True):
        table.add_row(*(Text(cell) for cell in cells))
    stdout.print(table)
    return 0


def models(as_json: options.Json = False) -> int:
    """Says which model specs work here and what is missing for the others."""
    rows = statuses()
    if as_json:
        print_json([{"spec": r.spec, "usable": r.usable, "detail": r.detail, "examples": r.examples} for r in rows])
        return 0
    table = Table(header_style="bold")
    for name in ("spec", "works here", "detail"):
        table.add_column(name)
    for row in rows:
        table.add_row(
            Text(row.spec), Text("yes" if row.usable else "no", "green" if row.usable else "yellow"), row.detail
        )
    stdout.print(table)
    return 0


def doctor(as_json: options.Json = False) -> int:
    """Starts Chromium once and says what this machine has. Exit code 2: there is no browser, 1: it is too slow."""
    from envs.chromium import Chromium

    async def start() -> str:
        async with Chromium.launch() as chromium:
            return chromium.version

    version = asyncio.run(start())
    if as_json:
        print_json({"chromium": version})
    else:
        stdout.print(f"Chromium {version} starts", highlight=False)
    return 0


def _show_rows(rows: Sequence[EpisodeRow], *, runs: bool) -> None:
    names = (*(("run",) if runs else ()), "episode", "outcome", "ended by", "steps", "milestones", "instruction")
    if len(rows) > _UNWRAPPED_ROWS:
        widest = max(len(row.episode) for row in rows)
        for row in rows:
            sys.stdout.write(printable("  ".join(_cells(row, runs=runs, widest=widest))) + "\n")
        sys.stdout.flush()
    else:
        table = Table(header_style="bold")
        for name in names:
            table.add_column(name)
        for row in rows:
            table.add_row(*(Text(cell.strip()) for cell in _cells(row, runs=runs, widest=0)))
        stdout.print(table)
    print_refused(stdout, summed(one for row in rows for one in row.blocked_requests))
    counts = Counter(row.outcome for row in rows)
    stdout.print(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()), highlight=False)
    for row in rows:
        if row.problem:
            stderr.print(Text(row.problem, "yellow"), soft_wrap=True)


def _cells(row: EpisodeRow, *, runs: bool, widest: int) -> tuple[str, ...]:
    dots = "".join("●" if done else "○" for done in row.z) or "-"
    named = (f"{row.run:24}",) if runs else ()
    told = (
        f"{row.outcome:10}",
        f"{row.ended_by or '-':10}",
        f"{row.steps:5}",
        f"{dots:6}",
        " ".join(row.instruction.split()),
    )
    return (*named, row.episode.ljust(widest), *told)


def _show_json(trace: Trace) -> int:
    lines: list[object] = [trace.header.model_dump(mode="json")]
    lines += [plan.model_dump(mode="json") for plan in trace.plans]
    for intent, commit in trace.steps:
        lines.append(intent.model_dump(mode="json"))
        if commit is not None:
            lines.append(commit.model_dump(mode="json"))
    lines += [event.model_dump(mode="json") for event in trace.events]
    if trace.footer is not None:
        lines.append(trace.footer.model_dump(mode="json"))
    print_json(lines)
    return 0


def _show_refused(trace: Trace) -> None:
    for intent, commit in trace.steps:
        before = intent.seen.blocked_requests
        during = commit.result.blocked_requests if commit is not None else ()
        for when, blocked in (("before", before), ("in", during)):
            if blocked:
                named = ", ".join(f"{name_of(one)} ({what_of(one)})" for one in blocked)
                stdout.print(Text(printable(f"{when} step {intent.step} refused: {named}"), "yellow"), soft_wrap=True)
    print_refused(stdout, summed(blocked_in(trace.steps)))


def _show_trace(trace: Trace) -> int:
    header, footer = trace.header, trace.footer
    stdout.print(Text.assemble(("task  ", "dim"), header.task.id))
    stdout.print(Text.assemble(("goal  ", "dim"), printable(header.instruction)))
    table = Table(header_style="bold")
    for name in ("step", "milestones", "action", "result", "seconds"):
        table.add_column(name)
    show_action = language("program").show
    for intent, commit in trace.steps:
        spent = commit.timings if commit else None
        seconds = spent.total if spent else 0.0
        result = f"{commit.result.status.value} {commit.result.message}".strip() if commit else "uncertain"
        dots = "".join("●" if done else "○" for done in intent.rating.z)
        table.add_row(
            str(intent.step),
            dots,
            Text(printable(show_action(intent.action))),
            Text(printable(result)),
            f"{seconds:.2f}",
        )
    stdout.print(table)
    _show_refused(trace)
    for event in trace.events:
        stdout.print(Text(printable(f"step {event.step}: {event.name} {event.detail}"), "dim"))
    if trace.torn:
        stdout.print(Text("the last line is torn and not counted: the process died while writing it", "yellow"))
    if footer is None:
        stdout.print("the trace has no end: resume the run to finish it")
        return 0
    stdout.print(Text(f"{footer.outcome}, ended by {footer.ended_by}, judged by {footer.judged_by}"))
    if footer.failure is not None:
        stdout.print(Text(printable(f"{footer.failure.category}: {footer.failure.reason}")))
    if footer.error:
        stdout.print(Text(printable(footer.error), "yellow"))
    return 0
