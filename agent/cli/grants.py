"""Options that grant the settings which are not taken from a run or trace of another machine, see
:mod:`agent.run.foreign_runs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.cli import options
from agent.cli.output import print_problem
from agent.run.foreign_runs import unset_value
from envs.core.plain_values import merged, read_toml

Url = Annotated[str | None, typer.Option(help="For a run of another machine: start URL of its open task.")]
Suite = Annotated[
    str | None,
    typer.Option(help="For a run of another machine: its suite, if that uses servers or code of this machine."),
]
Parent = Annotated[Path | None, typer.Option(help="For a run of another machine: the trace that it branches from.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(help="For a run of another machine: allow requests to this origin besides --url's; repeatable."),
]
Secret = Annotated[
    list[str] | None,
    typer.Option(
        help="For a run of another machine: declare a secret as NAME=env:VARIABLE or NAME=file:PATH, optionally "
        "followed by @ORIGIN; repeatable."
    ),
]
Tools = Annotated[
    str | None,
    typer.Option("--tools", help="For a run of another machine: tools of installed packages that the policy may call."),
]
StorageState = Annotated[
    Path | None,
    typer.Option(help="For a run of another machine: file of cookies and storage to start with (Playwright's format)."),
]
UploadFolder = Annotated[
    str | None,
    typer.Option(metavar="<path>", help="For a run of another machine: allow uploads of files below this folder only."),
]
"""A string, because the path of an empty one is the current folder."""
Schema = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|JSON",
        help="For a run of another machine: JSON Schema that the answer must match, unless it is N/A: a file, or the "
        "schema {…}.",
    ),
]
LangSmith = Annotated[
    bool,
    typer.Option(
        "--langsmith",
        help="For a run of another machine: trace to LangSmith, which sends page text, prompts and answers to its "
        "server.",
    ),
]
Settings = Annotated[
    Path | None, typer.Option("--config", help="For a run of another machine: TOML file with the settings to grant.")
]
Without = Annotated[
    str | None, typer.Option(help="For a run of another machine: settings to drop, e.g. secrets,allow.")
]


def granted(values: dict[str, Any], config: Path | None, without: str | None) -> dict[str, Any]:
    """Merges the granted settings for :func:`agent.run.foreign_runs.apply_grants`; *values* override the file. Raises
    BadInput."""
    settings: Mapping[str, Any] = {}
    if config is not None:
        settings = read_toml(config)
        options.report_outdated_keys(settings, config)
    settings = merged(settings, options.without_none(values))
    for name in options.split_names(without):
        settings = merged(settings, unset_value(name))
    return dict(settings)


def print_grants(path: Path, grants: Iterable[str]) -> None:
    """Prints what a run or trace of another machine will use, before it is used."""
    used = "; ".join(grants) or "nothing of this machine, and no server"
    print_problem(f"{path} was not written on this machine, or was changed since. It uses {used}")
