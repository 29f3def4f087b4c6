"""`mira sites`: builds, starts, lists and stops the sites, and verifies the suite."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from agent.cli import options
from agent.cli.output import EXIT_FAILED, print_json, print_table, stderr, stdout
from agent.cli.outputs import output_file
from agent.cli.tables import Column, FittedTable
from envs.core.errors import BadInput
from envs.suites.sites import farm
from envs.suites.sites.farm import Running
from envs.suites.sites.golden import build_golden
from envs.suites.sites.kinds import KINDS, SiteName

if TYPE_CHECKING:
    from envs.suites.sites.proof import Proof

app = typer.Typer(
    help="Manage the web applications of the suite `sites`: shop, forum, code site, CMS, map.", no_args_is_help=True
)

Names = Annotated[str | None, typer.Option("--sites", help="Comma-separated sites; default: all five.")]


@app.command("build")
def build(names: Names = None) -> int:
    """Build the initial states of the sites that are missing; this takes about two minutes for all, once."""

    async def all_of() -> None:
        for name in _names(names):
            await build_golden(name, _log)

    asyncio.run(all_of())
    return 0


@app.command("up")
def up(
    copies: Annotated[int, typer.Option(min=1, max=64, help="Number of copies of each site.")] = 1,
    names: Names = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Start copies of the sites on loopback, which runs use until `mira sites down`."""
    return _show(asyncio.run(farm.up(_names(names), copies, _log)), as_json)


@app.command("status")
def status(wide: options.Wide = False, as_json: options.Json = False) -> int:
    """List the copies that `up` started, with memory and state."""
    return _show(asyncio.run(farm.status()), as_json)


@app.command("down")
def down(as_json: options.Json = False) -> int:
    """Stop every copy that `up` started."""
    ended = asyncio.run(farm.down())
    if as_json:
        print_json({"ended": ended})
    else:
        stdout.print(f"{ended} stopped", highlight=False)
    return 0


@app.command("verify")
def verify(
    tasks: Annotated[str | None, typer.Option(help="Comma-separated templates; default: all.")] = None,
    seeds: Annotated[str, typer.Option(help="Seeds of the instances of each template, e.g. 0-7.")] = "0-7",
    workers: Annotated[int, typer.Option(min=1, max=16, help="Number of instances in parallel.")] = 2,
    out: Annotated[
        Path | None,
        output_file("Append proofs to this JSON Lines file, and skip instances that it already has."),
    ] = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Verify the suite: the oracle succeeds, idle and random agents fail, mutated outcomes are rejected.

    Exit code 1 if an instance was not proven.
    """
    from agent.cli.verify_sites import (
        ProofRequest,
        proof_table,
        prove_all,
    )  # imports Playwright, which listing copies does not need

    chosen = options.select("sites", options.chosen_names(tasks, "--tasks") or (), options.parse_seeds(seeds))
    proofs = asyncio.run(prove_all(ProofRequest(chosen.refs(), workers, out)))
    if as_json:
        print_json([proof.model_dump(mode="json") for proof in proofs])
    else:
        print_table(proof_table(proofs))
        _print_problems(proofs)
    return 0 if all(proof.proven for proof in proofs) else EXIT_FAILED


def _print_problems(proofs: Sequence[Proof]) -> None:
    for proof in proofs:
        for problem in proof.problems:
            stdout.print(Text(f"{proof.template}/{proof.seed}: {problem}", "red"), soft_wrap=True)


def _names(text: str | None) -> tuple[SiteName, ...]:
    names = options.split_names(text)
    for name in names:
        if name not in KINDS:
            raise BadInput(f"--sites: unknown site {name!r}; known are {', '.join(KINDS)}")
    return tuple(name for name in KINDS if not names or name in names)


def _log(line: str) -> None:
    stderr.print(Text(line, "dim"))


def _show(rows: Sequence[Running], as_json: bool) -> int:
    if as_json:
        print_json([row.model_dump(mode="json") for row in rows])
        return 0
    if not rows:
        stdout.print("no copies are running; start some with: mira sites up")
        return 0
    table = FittedTable(
        Column("copy", right=True),
        Column("site"),
        Column("application", wrap=12, drop=1),
        Column("address"),
        Column("pid", right=True, drop=3),
        Column("MB", right=True, drop=2),
        Column("state", wrap=12),
    )
    for row in rows:
        software = KINDS[row.site].application.partition(" (")[0]
        cells = (str(row.copy_number), row.site, software, row.url, str(row.pid), f"{row.megabytes:.0f}")
        table.row(*cells, Text(row.state, "green" if row.state in ("free", "held") else "red"))
    print_table(table)
    return 0
