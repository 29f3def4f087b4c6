"""`mira eval --curves`: prints and draws the critics' curves of one episode."""

from __future__ import annotations

from pathlib import Path

from agent.cli.output import EXIT_OK, print_json, print_table, printable, stdout
from agent.cli.tables import Column, FittedTable
from training.loop.evaluation.drawing import check_target, write_picture
from training.loop.evaluation.value_curves import EpisodeCurves, picture, read_curves


def show_curves(episode: Path, critics: Path | None, out: Path | None, *, as_json: bool) -> int:
    """Prints a line per step and writes the drawing to *out*. Raises BadInput."""
    if out is not None:
        check_target(out, (".svg",))
    curves, file, values = read_curves(episode, critics)
    if out is not None:
        write_picture(picture(file, values), out)
    if as_json:
        print_json(curves.model_dump(mode="json") | {"out": str(out) if out else None})
        return EXIT_OK
    print_table(table(curves))
    stdout.print(f"critics  {curves.critics}", highlight=False, soft_wrap=True, markup=False)
    if out is not None:
        stdout.print(f"drawing  {out}", highlight=False, soft_wrap=True, markup=False)
    return EXIT_OK


def table(curves: EpisodeCurves) -> FittedTable:
    """One row per step: V and P of the state before it, the true progress of a success, milestones."""
    result = FittedTable(
        Column("step", right=True),
        Column("action", wrap=30, drop=2),
        Column("V", right=True),
        Column("P", right=True),
        Column("true P", right=True, drop=1),
        Column("done", right=True),
        Column("reaches", wrap=24),
        title=f"{curves.task}, {curves.outcome}",
    )
    for point in curves.points:
        numbers = (point.value, point.potential, point.progress)
        result.row(
            str(point.step),
            printable(point.action),
            *("" if number is None else f"{number:.3f}" for number in numbers),
            f"{point.done} of {curves.milestones}" if curves.milestones else "",
            printable(", ".join(point.gained)),
        )
    return result
