"""`mira import`: converts logs of other harnesses to traces."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, cast

import typer

from agent.cli import options
from agent.cli.output import print_json, stdout
from agent.cli.outputs import output_folder
from envs.core.errors import BadInput
from envs.core.trace_store import read_summary
from envs.importing import READERS, Format, import_folder


def import_traces(
    kind: Annotated[
        str, typer.Argument(metavar="FORMAT", help="`webarena` (render_*.html) or `agentlab` (BrowserGym).")
    ],
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="Folder with the results of the other harness.")],
    out: Annotated[Path, output_folder("New folder for the traces.")],
    as_json: options.Json = False,
) -> int:
    """Convert logs of other harnesses to traces.

    All commands that read runs (`show`, `analyze`, `report` and others) accept the result.
    """
    if kind not in READERS:
        raise BadInput(f"unknown format {kind!r}; known are {', '.join(READERS)}")
    if not results.is_dir():
        raise BadInput(f"{str(results)!r} is not a folder")
    paths = list(import_folder(cast("Format", kind), results, out))
    footers = [read_summary(path).footer for path in paths]
    outcomes = Counter(footer.outcome for footer in footers if footer is not None)
    if as_json:
        print_json({"out": str(out), "episodes": len(paths), "outcomes": dict(outcomes)})
    else:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        stdout.print(f"{len(paths)} episodes in {out} ({counts})", highlight=False, soft_wrap=True)
    return 0
