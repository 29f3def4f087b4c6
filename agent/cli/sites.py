"""`mira sites`: builds, starts, lists and ends the sites, and proves the suite."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from agent.cli import options
from agent.cli.output import EXIT_FAILED, print_json, print_table, stderr, stdout
from agent.cli.tables import Column, FittedTable
from envs.core.errors import BadInput
from envs.suites.sites import farm
from envs.suites.sites.farm import Running
from envs.suites.sites.golden import build_golden
from envs.suites.sites.kinds import KINDS, SiteName

if TYPE_CHECKING:
    from envs.suites.sites.proof import Proof

app = typer.Typer(help="Real web applications as a world for agents: shop, forum, code site, CMS, map.")

Names = Annotated[str | None, typer.Option("--sites", help="Comma-separated sites; default all five.")]


@app.command("build")
def build(names: Names = None) -> int:
    """Builds the golden states that are missing (once; about two minutes for all)."""

    async def all_of() -> None:
        for name in _names(names):
            await build_golden(name, _say)

    asyncio.run(all_of())
    return 0


@app.command("up")
def up(
    copies: Annotated[int, typer.Option(min=1, max=64, help="Copies of each site.")] = 1,
    names: Names = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Starts copies of the sites on loopback; runs borrow them, `mira sites down` ends them."""
    return _show(asyncio.run(farm.up(_names(names), copies, _say)), as_json)


@app.command("status")
def status(wide: options.Wide = False, as_json: options.Json = False) -> int:
    """Lists the copies that `up` started, with memory and state."""
    return _show(asyncio.run(farm.status()), as_json)


@app.command("down")
def down(as_json: options.Json = False) -> int:
    """Ends every copy that `up` started."""
    ended = asyncio.run(farm.down())
    if as_json:
        print_json({"ended": ended})
    else:
        stdout.print(f"{ended} ended", highlight=False)
    return 0


@app.command("verify")
def verify(
    tasks: Annotated[str | None, typer.Option(help="Comma-separated templates; default all.")] = None,
    seeds: Annotated[str, typer.Option(help="Instances of each template, e.g. 0-7.")] = "0-7",
    workers: Annotated[int, typer.Option(min=1, max=16, help="Instances at the same time.")] = 2,
    out: Annotated[
        Path | None,
        typer.Option(help="JSON lines, one a proof, written as they come; what is in it is not done again."),
    ] = None,
    wide: options.Wide = False,
    as_json: options.Json = False,
) -> int:
    """Proves the suite: the oracle succeeds, empty and random agents fail, every mutated outcome is rejected.

    Exit code 1 if anything was not proven.
    """
    from agent.cli.verify_sites import (
        Proving,
        proof_table,
        prove_all,
    )  # with Playwright, which a list of copies needs not

    chosen = options.select("sites", options.split_names(tasks), options.parse_seeds(seeds))
    proofs = asyncio.run(prove_all(Proving(chosen.refs(), workers, out)))
    if as_json:
        print_json([proof.model_dump(mode="json") for proof in proofs])
    else:
        print_table(proof_table(proofs))
        _tell_problems(proofs)
    return 0 if all(proof.proven for proof in proofs) else EXIT_FAILED


def _tell_problems(proofs: Sequence[Proof]) -> None:
    for proof in proofs:
        for problem in proof.problems:
            stdout.print(Text(f"{proof.template}/{proof.seed}: {problem}", "red"), soft_wrap=True)


def _names(text: str | None) -> tuple[SiteName, ...]:
    given = options.split_names(text)
    for name in given:
        if name not in KINDS:
            raise BadInput(f"--sites: unknown site {name!r}; known are {', '.join(KINDS)}")
    return tuple(name for name in KINDS if not given or name in given)


def _say(line: str) -> None:
    stderr.print(Text(line, "dim"))


def _show(rows: Sequence[Running], as_json: bool) -> int:
    if as_json:
        print_json([row.model_dump(mode="json") for row in rows])
        return 0
    if not rows:
        stdout.print("no copies run; start some with: mira sites up")
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
