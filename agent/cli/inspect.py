"""`mira show`, `tasks`, `models`, `doctor`: the commands that list and check, and play no episode."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agent.cli import options
from agent.cli.extras import EXTRAS, Extra, missing_packages
from agent.cli.model_rows import ORACLE_STATUS, model_row, models_table
from agent.cli.output import print_json, print_problem, print_table, stderr, stdout
from agent.cli.show_trace import show_trace
from agent.cli.tables import Column, FittedTable
from agent.cli.vision_profiles import vision_table
from agent.episode.refused_origins import print_refused
from agent.inspection.listing import EpisodeRow, episode_row
from agent.run.discover_traces import EpisodeFile, discover_traces
from envs.core.trace_store import Trace, edited_message
from envs.security.blocked_requests import merge_blocked_origins
from models.optional import install_command
from models.registry import AddedEntry
from models.specs import statuses

Where = Annotated[list[Path], typer.Argument(help="Runs, folders of runs, or traces.", metavar="RUN")]

Specs = Annotated[
    list[str] | None,
    typer.Argument(help="Model specs whose prompts, vision profile and constraints are shown.", metavar="MODEL"),
]


def show(paths: Where, wide: options.Wide = False, as_json: options.Json = False) -> int:
    """List the episodes of runs, or the steps of one trace."""
    if len(paths) == 1 and paths[0].is_file():
        file = EpisodeFile(paths[0])
        trace = file.read()
        if as_json:
            return _show_json(trace)
        show_trace(trace, file.blobs)
        return 0
    rows = [episode_row(file.path) for file in discover_traces(paths)]
    if as_json:
        print_json([row.model_dump(mode="json") for row in rows])
    else:
        _show_rows(rows, runs=len({row.run for row in rows}) > 1)
    return 0


def tasks(
    suite: Annotated[str, typer.Option(help="Suite to list.")] = "miniwob",
    split: options.Split = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """List the tasks of a suite with their checkers, milestones, oracle solvers and requirements."""
    infos = options.suite_tasks(suite, split)
    if as_json:
        print_json([info.model_dump(mode="json") for info in infos])
        return 0
    cells = {
        Column("task"): [info.name for info in infos],
        Column("category", drop=1): [info.category for info in infos],
        Column("kind", drop=6): [info.kind for info in infos],
        Column("difficulty", drop=5): [info.difficulty for info in infos],
        Column("split", drop=7): [info.split for info in infos],
        Column("checker", drop=3): ["yes" if info.has_checker else "no" for info in infos],
        Column("milestones", right=True, drop=2): [str(info.milestones or "-") for info in infos],
        Column("oracle", drop=4): ["yes" if info.oracle else "no" for info in infos],
        Column("needs", drop=8): [info.needs for info in infos],
    }
    shown = {column: values for column, values in cells.items() if any(values)}
    if same := {column: values[0] for column, values in shown.items() if len(values) > 1 and len(set(values)) == 1}:
        common = ", ".join(f"{column.name} {value}" for column, value in same.items())
        stdout.print(f"all {len(infos)}: {common}", soft_wrap=True)
        shown = {column: values for column, values in shown.items() if column not in same}
    table = FittedTable(*shown)
    for row in zip(*shown.values(), strict=True):
        table.row(*row)
    print_table(table)
    return 0


def models(specs: Specs = None, wide: options.Wide = False, as_json: options.Json = False) -> int:
    """List model specs, whether each works here, what is missing, and prompt profiles.

    With one MODEL or more, show their prompt profiles, vision profiles and constraints only."""
    if specs:
        return _show_profiles_of(specs, as_json)
    rows = [*statuses(), ORACLE_STATUS]
    if as_json:
        print_json([{"spec": r.spec, "usable": r.usable, "detail": r.detail, "examples": r.examples} for r in rows])
        return 0
    table = FittedTable(Column("spec"), Column("works here"), Column("detail", wrap=24), Column("examples", drop=1))
    for row in rows:
        works = Text("yes" if row.usable else "no", "green" if row.usable else "yellow")
        table.row(row.spec, works, row.detail, ", ".join(row.examples))
    print_table(table)
    print_table(_profiles_table())
    print_table(vision_table())
    return 0


def _show_profiles_of(specs: Sequence[str], as_json: bool) -> int:
    found = {row["spec"]: row for row in map(model_row, specs)}
    if as_json:
        print_json(list(found.values()))
    else:
        print_table(models_table(list(found.values())))
    return 0


def _profiles_table() -> FittedTable:
    from agent.profiles.profile import profiles

    table = FittedTable(Column("profile"), Column("prompts", wrap=24), Column("models", wrap=24, drop=1))
    for profile in profiles().values():
        sizes = [f"up to {profile.up_to_billions:g} billion parameters"] if profile.up_to_billions else []
        table.row(profile.name, profile.about, ", ".join((*sizes, *profile.models)))
    return table


def doctor(as_json: options.Json = False) -> int:
    """Check that Chromium starts, and list the installed extras.

    Exit code 1 if Chromium does not start in time, 2 if there is none.
    """
    from agent.run.added_entries import added_entries
    from envs.browser.chromium import Chromium

    async def start() -> str:
        async with Chromium.launch() as chromium:
            return chromium.version

    version = asyncio.run(start())
    missing = {extra: missing_packages(extra) for extra in EXTRAS}
    added = added_entries()
    if as_json:
        packages = {extra.name: lacks for extra, lacks in missing.items()}
        print_json({"chromium": version, "missing": packages, "added": [asdict(entry) for entry in added]})
        return 0
    stdout.print(f"Chromium {version} starts", highlight=False)
    print_table(_extras_table(missing))
    if any(missing.values()):
        stdout.print(f"to install one: {install_command('EXTRA')}", highlight=False, markup=False)
    if added:
        print_table(_added_table(added))
    return 0


def _extras_table(missing: Mapping[Extra, Sequence[str]]) -> FittedTable:
    table = FittedTable(Column("extra"), Column("installed"), Column("adds", wrap=24))
    for extra, packages in missing.items():
        table.row(extra.name, Text("no", "yellow") if packages else Text("yes", "green"), extra.adds)
    return table


def _added_table(added: Sequence[AddedEntry]) -> FittedTable:
    table = FittedTable(Column("added entry"), Column("group"), Column("package"), Column("problem", wrap=24))
    for entry in added:
        table.row(
            entry.name, entry.group, entry.package, Text(entry.problem or "none", "yellow" if entry.problem else "")
        )
    return table


def _show_rows(rows: Sequence[EpisodeRow], *, runs: bool) -> None:
    run = (Column("run", drop=1),) if runs else ()
    table = FittedTable(
        *run,
        Column("episode"),
        Column("outcome"),
        Column("ended by", drop=5),
        Column("steps", right=True, drop=2),
        Column("milestones", drop=3),
        Column("instruction", drop=4, wrap=20, lines=2),
    )
    for row in rows:
        dots = "".join("●" if done else "○" for done in row.z) or "-"
        cells = (row.episode, row.outcome, row.ended_by or "-", str(row.steps), dots, row.instruction)
        table.row(*((row.run,) if runs else ()), *cells)
    print_table(table)
    print_refused(stdout, merge_blocked_origins(origin for row in rows for origin in row.blocked_requests))
    counts = Counter(row.outcome for row in rows)
    stdout.print(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()), highlight=False)
    for row in rows:
        if row.problem:
            stderr.print(Text(row.problem, "yellow"), soft_wrap=True)


def _show_json(trace: Trace) -> int:
    if trace.seal.edited is not None:
        print_problem(edited_message(trace.path, trace.seal.edited))
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
