"""Many proofs at once, each written as it comes, so that an interrupted `mira sites verify` goes on where it was."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from pydantic import ValidationError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agent.cli.output import stderr
from agent.cli.tables import Column, FittedTable
from envs.browser.chromium import Chromium
from envs.core.disk_errors import writing
from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from envs.suites.sites.proof import Proof, prove
from envs.suites.sites.suite import SitesSuite


@dataclass(frozen=True, slots=True)
class Proving:
    """What is to be proven."""

    tasks: Sequence[TaskRef]
    workers: int
    out: Path | None
    """Where proofs are kept; None: nowhere."""


async def prove_all(what: Proving) -> tuple[Proof, ...]:
    """One proof a task, in the order given. Raises BadInput for an `out` that is no file of proofs."""
    done = _read(what.out)
    waiting = [task for task in what.tasks if (task.name, task.seed) not in done]
    columns = (
        TextColumn("proving"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with tempfile.TemporaryDirectory(prefix="mira-verify-") as folder, Progress(*columns, console=stderr) as progress:
        bar = progress.add_task("", total=len(what.tasks), completed=len(what.tasks) - len(waiting))
        async with Chromium.launch() as chromium, SitesSuite(chromium, Path(folder)) as suite:

            async def work() -> None:
                environment = await suite.environment()
                try:
                    while waiting:
                        task = waiting.pop(0)
                        proof = await prove(environment, task)
                        done[task.name, task.seed] = proof
                        _keep(what.out, proof)
                        progress.update(bar, advance=1, description=f"{task.name}/{task.seed}")
                finally:
                    await environment.close()

            workers = [asyncio.ensure_future(work()) for _ in range(min(what.workers, len(waiting)))]
            try:
                await asyncio.gather(*workers)
            finally:  # the suite is theirs until all of them have ended
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
    return tuple(done[task.name, task.seed] for task in what.tasks)


def proof_table(proofs: Sequence[Proof]) -> FittedTable:
    """One line a template, and their sum."""
    table = FittedTable(
        Column("template"),
        Column("instances", right=True),
        Column("proven", right=True),
        Column("oracle's actions", right=True, wrap=8, drop=2),
        Column("wrong outcomes tried", right=True, wrap=8, drop=1),
        Column("seconds each", right=True, wrap=7, drop=3),
    )
    for name, group in groupby(proofs, key=lambda proof: proof.template):
        table.row(name, *_cells(list(group)))
    table.section()
    table.row("all", *_cells(proofs))
    return table


def _cells(proofs: Sequence[Proof]) -> list[str]:
    actions = sorted(proof.actions for proof in proofs)
    between = f"{actions[0]}-{actions[-1]}" if actions else "-"
    mean = sum(proof.seconds for proof in proofs) / max(1, len(proofs))
    proven = sum(proof.proven for proof in proofs)
    return [str(len(proofs)), str(proven), between, str(sum(proof.mutants for proof in proofs)), f"{mean:.1f}"]


def _read(path: Path | None) -> dict[tuple[str, int], Proof]:
    """What is proven; a last line that was cut off while it was written goes, so that the next one stands alone."""
    if path is None or not path.exists():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        proofs = [Proof.model_validate_json(line) for line in whole.splitlines()]
    except (ValidationError, UnicodeDecodeError) as error:
        raise BadInput(f"--out {path} is no file of proofs: name another") from error
    if not text.startswith("{") and text:
        raise BadInput(f"--out {path} is no file of proofs: name another")
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return {(proof.template, proof.seed): proof for proof in proofs if proof.proven}


def _keep(path: Path | None, proof: Proof) -> None:
    if path is not None:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(proof.model_dump_json() + "\n")
