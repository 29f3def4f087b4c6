"""`mira data`: downloads task files and map data that other projects publish into a cache."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agent.cli import options
from agent.cli.output import print_json, print_table, stdout
from agent.cli.tables import Column, FittedTable
from envs.core.errors import BadInput
from envs.suites.wheel_data import DATA, WheelData, cached, fetch

app = typer.Typer(
    help="Download data sets, import them, and render pages into grounding examples.", no_args_is_help=True
)
"""`training.cli.data` adds commands."""


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(DATA)}.", metavar="NAME")],
    path: Annotated[
        Path | None, typer.Option(help="Read this wheel, folder or file instead of the package index.")
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Download a data package, verify its files, and keep them in the cache."""
    if name not in DATA:
        raise BadInput(f"unknown data set {name!r}: known are {', '.join(DATA)}")
    folder = fetch(DATA[name], source=path)
    if as_json:
        print_json(_row(DATA[name], folder))
        return 0
    for file in DATA[name].files:
        stdout.print(str(folder / file.name), highlight=False, soft_wrap=True)
    stdout.print(Text(f"{DATA[name].notice} Licence: {DATA[name].licence}.", "dim"), soft_wrap=True)
    return 0


@app.command("list")
def list_data(wide: options.Wide = False, as_json: options.Json = False) -> int:
    """List the data sets, their packages, and which are cached."""
    rows = [(data, cached(data)) for data in DATA.values()]
    if as_json:
        print_json([_row(data, folder) for data, folder in rows])
        return 0
    table = FittedTable(Column("name"), Column("from", wrap=20), Column("licence", drop=1), Column("cached"))
    for data, folder in rows:
        here = Text("yes" if folder else "no", "green" if folder else "yellow")
        table.row(data.name, data.requirement, data.licence, here)
    print_table(table)
    return 0


def _row(data: WheelData, folder: Path | None) -> dict[str, object]:
    return {
        "name": data.name,
        "package": data.requirement,
        "licence": data.licence,
        "notice": data.notice,
        "folder": str(folder) if folder else None,
        "files": [{"name": file.name, "sha256": file.sha256} for file in data.files],
    }
