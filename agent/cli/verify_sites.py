"""Makes many proofs in parallel and appends each to a file, so that an interrupted `mira sites verify` continues."""

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
from envs.core.json_lines import json_lines
from envs.core.tasks import TaskRef
from envs.suites.sites.proof import Proof, prove
from envs.suites.sites.suite import SitesSuite


@dataclass(frozen=True, slots=True)
class ProofRequest:
    """The task instances to prove, and how."""

    tasks: Sequence[TaskRef]
    workers: int
    out: Path | None
    """File of proofs; None keeps none."""


async def prove_all(request: ProofRequest) -> tuple[Proof, ...]:
    """Makes one proof per task, in the order of the request. Raises BadInput if `out` is not a file of proofs."""
    done = _read(request.out)
    waiting = [task for task in request.tasks if (task.name, task.seed) not in done]
    columns = (
        TextColumn("proving"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with tempfile.TemporaryDirectory(prefix="mira-verify-") as folder, Progress(*columns, console=stderr) as progress:
        bar = progress.add_task("", total=len(request.tasks), completed=len(request.tasks) - len(waiting))
        async with Chromium.launch() as chromium, SitesSuite(chromium, Path(folder)) as suite:

            async def work() -> None:
                environment = await suite.environment()
                try:
                    while waiting:
                        task = waiting.pop(0)
                        proof = await prove(environment, task)
                        done[task.name, task.seed] = proof
                        _keep(request.out, proof)
                        progress.update(bar, advance=1, description=f"{task.name}/{task.seed}")
                finally:
                    await environment.close()

            workers = [asyncio.ensure_future(work()) for _ in range(min(request.workers, len(waiting)))]
            try:
                await asyncio.gather(*workers)
            finally:  # the suite must stay open until all workers have ended
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
    return tuple(done[task.name, task.seed] for task in request.tasks)


def proof_table(proofs: Sequence[Proof]) -> FittedTable:
    """A table with one row per template, and their sum."""
    table = FittedTable(
        Column("template"),
        Column("instances", right=True),
        Column("proven", right=True),
        Column("oracle's actions", right=True, wrap=8, drop=2),
        Column("mutants tried", right=True, wrap=8, drop=1),
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
    """Reads the proofs in *path*, and removes a last line that is incomplete."""
    if path is None or not path.exists():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
        complete = text[: text.rfind("\n") + 1]
        proofs = [Proof.model_validate_json(line) for line in json_lines(complete)]
    except (ValidationError, UnicodeDecodeError) as error:
        raise BadInput(f"--out {path} is not a file of proofs: use another file") from error
    if not text.startswith("{") and text:
        raise BadInput(f"--out {path} is not a file of proofs: use another file")
    if complete != text:
        path.write_text(complete, encoding="utf-8")
    return {(proof.template, proof.seed): proof for proof in proofs if proof.proven}


def _keep(path: Path | None, proof: Proof) -> None:
    if path is not None:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(proof.model_dump_json() + "\n")
