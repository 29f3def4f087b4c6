"""`mira report`: writes one HTML file for one or several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from agent.cli import options
from agent.cli.output import counting, print_json, stderr, stdout
from agent.cli.outputs import output_file
from agent.inspection.report import Report, Screenshots, explain_failures, write_report
from agent.run.discover_traces import discover_traces

Runs = Annotated[list[Path], typer.Argument(help="Runs, folders of runs, or traces.", metavar="RUN")]
References = Annotated[
    list[Path] | None, typer.Option(help="Also show successes of this run next to failures; repeatable.")
]
Out = Annotated[
    Path | None, output_file("HTML file; default: report.html in the run's folder, or here for several runs.")
]
Pictures = Annotated[
    Screenshots,
    typer.Option(
        help="Screenshots to embed; key: those at the key step and at the end; auto: all up to 1,500 steps, else key."
    ),
]

_SHOWN_PROBLEMS = 10


def report(
    runs: Runs,
    references: References = None,
    out: Out = None,
    screenshots: Pictures = "auto",
    as_json: options.Json = False,
) -> int:
    """Write one self-contained HTML report: steps, milestones and cause of failure of every episode."""
    total = len(discover_traces(runs))
    with counting("episodes", total, quiet=as_json) as progress:
        written = write_report(
            runs,
            references=references or (),
            out=out,
            screenshots=screenshots,
            analyses=explain_failures(runs, references or ()),
            on_progress=progress,
        )
    _print_json(written) if as_json else _print(written)
    return 0


def _print(written: Report) -> None:
    stdout.print(str(written.path), highlight=False, soft_wrap=True)
    pictures = f"{written.pictures} screenshots ({written.picture_bytes / 1e6:.1f} MB)"
    left_out = f", {written.pictures_left_out} left out" if written.pictures_left_out else ""
    stdout.print(
        Text(f"{written.episodes} episodes, {written.bytes / 1e6:.1f} MB, {pictures}{left_out}", "dim"), soft_wrap=True
    )
    for problem in written.problems[:_SHOWN_PROBLEMS]:
        stderr.print(Text(problem, "yellow"), soft_wrap=True)
    if len(written.problems) > _SHOWN_PROBLEMS:
        stderr.print(Text(f"… and {len(written.problems) - _SHOWN_PROBLEMS} more, in the report", "yellow"))


def _print_json(written: Report) -> None:
    print_json(
        {
            "report": str(written.path),
            "episodes": written.episodes,
            "bytes": written.bytes,
            "screenshots": {
                "count": written.pictures,
                "bytes": written.picture_bytes,
                "left_out": written.pictures_left_out,
            },
            "problems": list(written.problems),
        }
    )
