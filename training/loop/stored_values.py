"""Stores the critics' values with the rollouts that they are of, so that the report and `mira eval --curves` can draw
them after the critics are removed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from agent.inspection.critic_values import StateValues, write_critic_values
from training.data.columns import Column, Columns
from training.loop.data import PhaseData
from training.loop.phase_context import PhaseContext
from training.rollouts.pool import find_runs


def store_critic_values(run: Path, context: PhaseContext, data: PhaseData, columns: Columns) -> None:
    """Writes V and P of the phase's own episodes into their run. Runs that arms share are left alone: each arm has
    other critics."""
    settings = context.settings
    if not settings.needs_value or not run.resolve().is_relative_to(context.folder.resolve()):
        return
    episodes: defaultdict[str, list[StateValues]] = defaultdict(list)
    for place, row in enumerate(data.rows):
        if row.trajectory < data.new:
            episode = data.trajectories[row.trajectory]
            state = StateValues(
                step=episode.decisions[row.time].step,
                value=columns[Column.VALUE][place],
                potential=columns[Column.POTENTIAL][place] if settings.needs_potential else None,
            )
            episodes[episode.episode_id].append(state)
    for part in find_runs(run):
        names = {trace.stem for trace in part.traces()} & episodes.keys()
        write_critic_values(part.path, f"phase {context.number}", {name: episodes[name] for name in sorted(names)})
