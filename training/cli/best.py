"""`mira train best`: the phase of a training run with the highest success on held-out tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.cli.output import EXIT_OK, print_json, stderr, stdout
from agent.cli.wait_notices import Notices
from envs.core.errors import BadInput
from training.cli.grpo import is_group_run
from training.cli.messages import AsJson, importing, needs_extra


def best(
    run: Annotated[Path, typer.Argument(help="Folder of a run of `mira train mira` or `mgrpo`.", metavar="RUN")],
    as_json: AsJson = False,
) -> int:
    """Print the phase with the highest success on held-out tasks, and its checkpoint.

    Of equal phases it is the earliest; phase 0 is the start. The highest of several measurements is too high by chance:
    measure its checkpoint again, on other seeds, before you compare it.
    """
    needs_extra()
    if is_group_run(run):
        raise BadInput(f"{str(run)!r} is a run of `mira train grpo`, which has no phases: see `mira train show`")
    with Notices(None if as_json else stderr):
        importing("torch")
        from training.loop.best_phase import best_phase

        result = best_phase(run)
    if as_json:
        print_json(result.model_dump(mode="json"))
        return EXIT_OK
    name = f"phase {result.phase}" if result.phase else "phase 0 (the start)"
    low, high = (f"{100 * bound:.0f}" for bound in result.interval)
    start = "" if not result.phase or result.start is None else f"; the start {result.start:.0%}"
    lines = [
        f"{name}, the best of {result.compared}: {result.successes} of {result.judged} held-out episodes solved,"
        f" {result.rate:.0%} ({low}-{high}){start}",
        result.checkpoint if result.kept else f"{result.checkpoint} (removed: the run had retain = 'last')",
    ]
    for line in lines:
        stdout.print(line, highlight=False, markup=False, soft_wrap=True)
    return EXIT_OK
