"""Options that give again what is not taken from a run or trace of another machine, see
:mod:`agent.run.foreign_runs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.cli import options
from agent.cli.output import print_problem
from agent.run.foreign_runs import nothing
from envs.core.plain_values import merged, read_toml

Url = Annotated[str | None, typer.Option(help="For a run of another machine: where its open task starts.")]
Suite = Annotated[
    str | None, typer.Option(help="For a run of another machine: its suite, if that uses servers or code of this one.")
]
Parent = Annotated[Path | None, typer.Option(help="For a run of another machine: the trace that it branches from.")]
Settings = Annotated[
    Path | None, typer.Option("--config", help="For a run of another machine: TOML file with settings given again.")
]
Without = Annotated[
    str | None, typer.Option(help="For a run of another machine: settings to leave out, e.g. secrets,allow.")
]


def given_again(values: dict[str, Any], config: Path | None, without: str | None) -> dict[str, Any]:
    """What was given, as :func:`agent.run.foreign_runs.settle` takes it; *values* win over the file. Raises
    BadInput."""
    found: Mapping[str, Any] = {}
    if config is not None:
        found = read_toml(config)
        options.report_outdated_keys(found, config)
    found = merged(found, options.without_none(values))
    for name in options.split_names(without):
        found = merged(found, nothing(name))
    return dict(found)


def tell_given(place: Path, given: Iterable[str]) -> None:
    """Says what a run or trace of another machine will use, before it does."""
    used = "; ".join(given) or "nothing of this machine, and no server"
    print_problem(f"{place} was not written on this machine, or was changed since. It uses {used}")
