"""Runs the training loop for a command and prints its phases."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli.output import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    print_json,
    print_problem,
    print_table,
    stderr,
)
from agent.cli.tables import Column, FittedTable
from training.cli.messages import importing, log, reporting_full_disk, stopping_if_diverged, watcher_of

if TYPE_CHECKING:
    from training.loop.loop import Progress
    from training.loop.metrics import PhaseMetrics
    from training.loop.settings import LoopSettings


def run_loop(settings: LoopSettings, out: Path, *, as_json: bool) -> int:
    """Runs or continues the loop in *out*, prints its phases and returns the exit code."""
    from agent.cli.display import RunDisplay

    with reporting_full_disk(out), RunDisplay(stderr, None if as_json else stderr) as display:
        importing("torch", "accelerate")
        from training.loop.loop import Loop
        from training.loop.rollouts import Interrupted

        loop = Loop.open(out, settings, (display,), log, watcher_of(display))
        try:
            with stopping_if_diverged():
                progress = asyncio.run(loop.run())
        except Interrupted as error:
            print_problem(f"{error}; continue with the same command")
            return EXIT_INTERRUPTED
    print_progress(progress, as_json)
    return EXIT_OK


def print_progress(progress: Progress, as_json: bool) -> None:
    """Prints a table with one row per phase, or JSON."""
    if as_json:
        print_json(progress.model_dump(mode="json"))
        return
    grouped = any(metrics.groups is not None for metrics in progress.phases)
    table = FittedTable(*(_GROUP_COLUMNS if grouped else _COLUMNS), title=f"{progress.arm}, seed {progress.seed}")
    for metrics in progress.phases:
        table.row(*(_group_cells(metrics) if grouped else _cells(metrics)))
    print_table(table)
    if any(metrics.seconds for metrics in progress.phases):
        print_table(_seconds_table(progress.phases))


def _seconds_table(phases: Sequence[PhaseMetrics]) -> FittedTable:
    """Wall seconds by part, a row for each phase that has any."""
    from training.loop.durations import by_kind

    spent = {metrics.phase: by_kind(metrics.seconds) for metrics in phases if metrics.seconds}
    known = {part for parts in spent.values() for part in parts}
    shown = [part for part in _PARTS if part in known] + sorted(known - _PARTS.keys())
    columns = (Column(_PARTS.get(part, part), right=True) for part in shown)
    table = FittedTable(Column("phase", right=True), *columns, Column("all", right=True), title="wall seconds by part")
    for phase, parts in spent.items():
        numbers = (f"{parts[part]:.0f}" if part in parts else "" for part in shown)
        table.row(str(phase), *numbers, f"{sum(parts.values()):.0f}")
    return table


_PARTS = {
    "rollouts": "roll-\nouts",
    "data": "data",
    "potential": "poten-\ntial",
    "value": "value",
    "advantages": "advan-\ntages",
    "actor": "actor",
    "evaluation": "evalu-\nation",
}
"""Headers of the parts of a phase, in their order."""


def held_out_cell(metrics: PhaseMetrics) -> str:
    """Success on held-out tasks with its 95 % interval; empty without an evaluation."""
    held = metrics.evaluation
    if held is None or not held.judged:
        return ""
    return f"{held.rate:.0%} ({100 * held.interval.low:.0f}-{100 * held.interval.high:.0f})"


def number_cell(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


_COLUMNS = (
    Column("phase", right=True),
    Column("held out\n(95 %)", right=True),
    Column("roll-\nouts", right=True, drop=1),
    Column("replayed", right=True, drop=4),
    Column("rows", right=True, drop=3),
    Column("A on\nwins", right=True, drop=5),
    Column("P\nerror", right=True, drop=6),
    Column("actor\nloss", right=True, drop=2),
)
_GROUP_COLUMNS = (
    Column("phase", right=True),
    Column("held out\n(95 %)", right=True),
    Column("roll-\nouts", right=True, drop=1),
    Column("reward", right=True),
    Column("groups\nthat differ", right=True, drop=2),
    Column("unread-\nable", right=True, drop=6),
    Column("rows", right=True, drop=7),
    Column("KL", right=True, drop=4),
    Column("clipped", right=True, drop=3),
    Column("browser", right=True, drop=8),
    Column("play,\ntrain s", right=True, drop=5),
)


def _cells(metrics: PhaseMetrics) -> tuple[str, ...]:
    return (
        str(metrics.phase),
        held_out_cell(metrics),
        _rollouts(metrics),
        str(metrics.replayed.chosen) if metrics.phase else "",
        str(metrics.actor_rows) if metrics.phase else "",
        number_cell(metrics.advantage_on_successes),
        number_cell(metrics.potential.absolute_error if metrics.potential else None),
        f"{metrics.actor_loss.first:.2f}→{metrics.actor_loss.last:.2f}" if metrics.actor_loss else "",
    )


def _group_cells(metrics: PhaseMetrics) -> tuple[str, ...]:
    from training.loop.durations import training_seconds

    groups = metrics.groups
    if groups is None:
        return (str(metrics.phase), held_out_cell(metrics), *("",) * (len(_GROUP_COLUMNS) - 2))
    played = metrics.seconds.get("rollouts")
    trained = training_seconds(metrics.seconds)
    return (
        str(metrics.phase),
        held_out_cell(metrics),
        _rollouts(metrics),
        number_cell(groups.counts.reward),
        f"{groups.counts.informative}/{groups.counts.groups}",
        "" if metrics.unreadable is None else f"{metrics.unreadable:.1%}",
        str(metrics.actor_rows),
        "" if groups.kl is None else f"{groups.kl:.4f}",
        "" if groups.clipped is None else f"{groups.clipped:.1%}",
        f"{groups.browser_share:.0%}",
        "" if played is None else f"{played:.0f}, {trained:.0f}",
    )


def _rollouts(metrics: PhaseMetrics) -> str:
    own = metrics.rollouts
    return f"{own.rate:.0%}" if own is not None and own.judged else ""
