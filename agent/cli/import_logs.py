"""`mira import`: traces made elsewhere, as Mira's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, cast

import typer

from agent.cli import options
from agent.cli.output import print_json, stdout
from envs.core.errors import BadInput
from envs.core.trace_store import read_summary
from envs.importing import READERS, Format, import_folder


def import_traces(
    kind: Annotated[
        str, typer.Argument(metavar="FORMAT", help="`webarena` (render_*.html) or `agentlab` (BrowserGym).")
    ],
    where: Annotated[Path, typer.Argument(help="Folder of the results.")],
    out: Annotated[Path, typer.Option(help="New folder for the traces.")],
    as_json: options.Json = False,
) -> int:
    """Turns logs of other harnesses into traces that `show`, `analyze` and `report` read."""
    if kind not in READERS:
        raise BadInput(f"format {kind!r} is not known; known are {', '.join(READERS)}")
    if not where.is_dir():
        raise BadInput(f"{str(where)!r} is no folder")
    paths = list(import_folder(cast("Format", kind), where, out))
    feet = [read_summary(path).footer for path in paths]
    outcomes = Counter(footer.outcome for footer in feet if footer is not None)
    if as_json:
        print_json({"out": str(out), "episodes": len(paths), "outcomes": dict(outcomes)})
    else:
        told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        stdout.print(f"{len(paths)} episodes in {out} ({told})", highlight=False, soft_wrap=True)
    return 0
