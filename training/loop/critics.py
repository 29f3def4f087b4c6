"""Trains the critics of a phase and scores them on data that they have not seen."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from envs.core.errors import BadInput
from training.data.cache import read_rows
from training.data.columns import Column
from training.data.rows import Row, RowEncoder, room_at_play
from training.data.trajectories import Trajectory
from training.engine.checkpoints import load_tokenizer, read_config
from training.engine.critics import CriticKind
from training.engine.stage_jobs import StageJob, write_job
from training.loop.critic_states import with_milestones
from training.loop.data import PhaseData
from training.loop.metrics import CriticScores, critic_scores
from training.loop.phase_context import PhaseContext
from training.mira.targets import row_progress, row_values

PRETRAINING = "potential-pretraining"
"""Folder name of the potential critic after other agents' successes."""


@dataclass(frozen=True, slots=True)
class Critics:
    """The trained critics of a phase."""

    folders: dict[CriticKind, Path]
    scores: dict[CriticKind, CriticScores]
    """Errors on unseen data, for critics that existed before the phase."""
    values: tuple[float, ...] | None
    """V of every row by cross-fitting: each by a critic that was not trained on the row's task. None without folds."""


def train_critics(context: PhaseContext, data: PhaseData) -> Critics:
    """Trains the critics that the settings need. Finished ones are skipped."""
    settings = context.settings
    kinds: list[CriticKind] = []
    if settings.needs_potential:
        kinds.append("potential")
    parts = folds(data.trajectories, settings.value.folds, settings.seed)
    crossed = settings.needs_value and len(set(parts)) > 1
    if settings.needs_value and (not crossed or settings.curriculum.value_band is not None):
        kinds.append("value")
    folders: dict[CriticKind, Path] = {}
    scores: dict[CriticKind, CriticScores | None] = {}
    for kind in kinds:
        folders[kind], scores[kind] = (_potential if kind == "potential" else _value)(context, data)
    values = _cross_fitted(context, data, parts) if crossed else None
    if values is not None:
        scores["value"] = _scored_across(context, data, values)
    return Critics(folders, {kind: score for kind, score in scores.items() if score is not None}, values)


def score_rows(context: PhaseContext, data: PhaseData, critics: Critics) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(potential, value) of every row; zeros for a critic that the settings do not need."""
    zeros = (0.0,) * len(data.rows)

    def scores(kind: CriticKind) -> tuple[float, ...]:
        folder = critics.folders.get(kind)
        return zeros if folder is None else _scores(folder, context, _states(context, kind, data))

    return scores("potential"), scores("value") if critics.values is None else critics.values


@dataclass(frozen=True, slots=True)
class _Examples:
    """Rows with a critic's target for each."""

    rows: Sequence[Row]
    targets: Sequence[float]


def _potential(context: PhaseContext, data: PhaseData) -> tuple[Path, CriticScores | None]:
    """Trains the potential critic on successes. The previous one is scored on this phase's, which it has not seen."""
    labels = row_progress(data.trajectories, data.rows)
    new = [place for place in sorted(labels) if data.rows[place].trajectory < data.new]
    states = _states(context, "potential", data)
    rows, targets = [states[place] for place in sorted(labels)], [labels[place] for place in sorted(labels)]
    unseen = _Examples([states[place] for place in new], [labels[place] for place in new])
    if context.demonstrations and "potential" not in context.critics:
        more, labelled = _demonstrated(context, data)
        rows, targets = [*rows, *more], [*targets, *labelled]
    _check_labelled(context, data, len(rows))
    return _critic(context, "potential", _Examples(rows, targets), unseen)


def _check_labelled(context: PhaseContext, data: PhaseData, labelled: int) -> None:
    """Raises BadInput where rewards would be shaped by a potential critic that never had a row to learn from: it is
    about 0.5 in every state, so that shaping adds a constant to the last reward of a success."""
    settings = context.settings
    shapes = settings.targets.shape_failures or any(trajectory.success for trajectory in data.trajectories)
    if labelled or not shapes or (settings.potential.keep and _has_learned(context)):
        return
    successes = [trajectory for trajectory in data.trajectories if trajectory.success]
    planned = sum(trajectory.milestones > 0 for trajectory in successes)
    raise BadInput(
        f"phase {context.number}: the potential critic has no row to learn from ({len(successes)} successes, {planned}"
        " of them with milestones): name runs with milestones in pretraining, or set targets.alpha to 0"
    )


def _has_learned(context: PhaseContext) -> bool:
    """Whether the potential critic had rows before this phase."""
    run = context.folder.parent
    tables = [run / f"phase-{number}" / "potential" / "rows.parquet" for number in range(1, context.number)]
    return bool(context.pretraining) or any(len(read_rows(table)[0]) > 0 for table in tables if table.exists())


def _value(context: PhaseContext, data: PhaseData) -> tuple[Path, CriticScores | None]:
    """Trains the value critic on every state of every trajectory. With folds, only a curriculum with a value band needs
    it."""
    targets = row_values(data.trajectories, data.rows, context.settings.targets)
    new = [place for place, row in enumerate(data.rows) if row.trajectory < data.new]
    states = _states(context, "value", data)
    unseen = _Examples([states[place] for place in new], [targets[place] for place in new])
    return _critic(context, "value", _Examples(states, targets), unseen)


def _cross_fitted(context: PhaseContext, data: PhaseData, parts: Sequence[int]) -> tuple[float, ...]:
    """V of every row by a critic that was never trained on any episode of its task: each continues the previous phase's
    critic of the same fold."""
    targets = row_values(data.trajectories, data.rows, context.settings.targets)
    states = _states(context, "value", data)
    values = [0.0] * len(data.rows)
    for part in range(context.settings.value.folds):
        own = [place for place, row in enumerate(data.rows) if parts[row.trajectory] == part]
        others = [place for place, row in enumerate(data.rows) if parts[row.trajectory] != part]
        learned = _Examples([states[place] for place in others], [targets[place] for place in others])
        critic = _trained(context, "value", learned, name=fold_name(part))
        scores = _scores(critic, context, [states[place] for place in own])
        for place, score in zip(own, scores, strict=True):
            values[place] = score
    return tuple(values)


def _scored_across(context: PhaseContext, data: PhaseData, values: Sequence[float]) -> CriticScores | None:
    """Scores the values of :func:`_cross_fitted` on this phase's rows, whose tasks the critics have not seen."""
    targets = row_values(data.trajectories, data.rows, context.settings.targets)
    new = [place for place, row in enumerate(data.rows) if row.trajectory < data.new]
    return critic_scores([values[place] for place in new], [targets[place] for place in new])


def folds(trajectories: Sequence[Trajectory], count: int, seed: int) -> tuple[int, ...]:
    """The fold of each trajectory, 0 to *count* - 1: random for each task instance, and equal in every phase."""
    return tuple(random.Random(f"folds {seed} {item.task.id}").randrange(count) for item in trajectories)


def fold_name(part: int) -> str:
    """Folder name of the value critic for the tasks of the fold *part*, counted from 0."""
    return f"value-fold-{part + 1}"


def _critic(
    context: PhaseContext, kind: CriticKind, learned: _Examples, unseen: _Examples
) -> tuple[Path, CriticScores | None]:
    """Trains a critic on *learned*; returns it with the previous critic's scores on *unseen*."""
    before = context.critics.get(kind)
    if before is None and kind == "potential" and context.pretraining:
        before = _pretrained(context)
    scores = None
    if before is not None:
        scores = critic_scores(_scores(before, context, unseen.rows), unseen.targets)
    return _trained(context, kind, learned, name=kind, start=before), scores


def _pretrained(context: PhaseContext) -> Path:
    """The potential critic after other agents' successes, which the first phase's continues."""
    rows, labels = _labelled(context, context.pretraining)
    return _trained(context, "potential", _Examples(rows, labels), name=PRETRAINING)


def _trained(
    context: PhaseContext, kind: CriticKind, learned: _Examples, *, name: str, start: Path | None = None
) -> Path:
    """Runs the stage in the folder *name*, unless it is done. It continues *start*, or the previous phase's critic of
    that name; the first one starts from the policy's trunk."""
    critic_settings = context.settings.potential if kind == "potential" else context.settings.value
    before = start or context.critics.get(name)
    start = before if before is not None and critic_settings.keep else context.policy
    folder = context.folder / name
    with context.part(name, f"{name} critic on {len(learned.rows)} rows"):
        if not (folder / "model").exists():
            job = StageJob(
                kind=kind,
                start=start.resolve(),
                optimization=critic_settings.optimization,
                head_rate=critic_settings.rate_of_head,
                compute=context.settings.compute,
                seed=context.seed,
                report_to=context.settings.report_to,
            )
            write_job(folder, job, learned.rows, {Column.TARGET: learned.targets})
        return context.runner.stage(folder)


def _demonstrated(context: PhaseContext, data: PhaseData) -> tuple[Sequence[Row], Sequence[float]]:
    """(rows, progress labels) of the demonstrations that are not replayed already."""
    replayed = {trajectory.identity for trajectory in data.trajectories[data.new :]}
    shown = [trajectory for trajectory in context.demonstrations if trajectory.identity not in replayed]
    return _labelled(context, shown)


def _labelled(context: PhaseContext, shown: Sequence[Trajectory]) -> tuple[Sequence[Row], Sequence[float]]:
    """(rows as the potential critic reads them, progress labels) of *shown*."""
    tokenizer = load_tokenizer(context.policy)
    room = room_at_play(read_config(context.policy), tokenizer)
    rows = RowEncoder(tokenizer, context.settings.compute.max_tokens, room).encode(shown).rows
    labels = row_progress(shown, rows)
    if context.settings.potential.milestones:
        rows = with_milestones(rows, shown, tokenizer)
    return [rows[place] for place in sorted(labels)], [labels[place] for place in sorted(labels)]


def _states(context: PhaseContext, kind: CriticKind, data: PhaseData) -> Sequence[Row]:
    """The rows as the critic *kind* reads them."""
    critic_settings = context.settings.potential if kind == "potential" else context.settings.value
    if not critic_settings.milestones:
        return data.rows
    return with_milestones(data.rows, data.trajectories, load_tokenizer(context.policy))


def _scores(critic: Path, context: PhaseContext, rows: Sequence[Row]) -> tuple[float, ...]:
    """The output of the critic at *critic* for each row."""
    return context.score("states", critic, rows)
