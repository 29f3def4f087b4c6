"""Plays the demo and saves the terminal's output as SVG: python scripts/record_demo.py docs/images/demo.svg"""

from __future__ import annotations

import asyncio
import io
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from agent.cli.display import RunDisplay, result_table
from agent.cli.options import parse_seeds, select
from agent.cli.run import DEMO_TASKS
from agent.config import Limits, RunConfig
from agent.progress import Event, StepDone
from agent.run.runner import run_suite

WIDTH = 118


async def record() -> Console:
    """Plays the demo; the returned console has recorded its output."""
    console = Console(record=True, width=WIDTH, force_terminal=True, file=io.StringIO())
    silent = Console(width=WIDTH, force_terminal=False, file=io.StringIO())
    display = RunDisplay(silent)
    steps = 0

    def snapshot(event: Event) -> None:
        nonlocal steps
        steps += isinstance(event, StepDone)
        if isinstance(event, StepDone) and steps == 41:
            console.print("[dim]while it plays:[/]")
            console.print(display.board())
            console.print()

    console.print("[bold]$ make demo[/]")
    with tempfile.TemporaryDirectory() as out:
        config = RunConfig(workers=2, limits=Limits(max_steps=12))
        selection = select("miniwob", DEMO_TASKS, parse_seeds("0-2"))
        result = await run_suite(config, selection, Path(out), (display, snapshot), run_id="20260101-120000-demo")
    console.print(result_table(result))
    console.print(f"traces  runs/{result.run_id}/episodes\nreport  runs/{result.run_id}/report.html", highlight=False)
    return console


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(asyncio.run(record()).export_svg(title="mira"), encoding="utf-8")
