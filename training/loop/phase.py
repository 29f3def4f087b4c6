"""Runs one phase, part by part (MiRA paper: Alg. 2, in the order of App. A.3): rollouts, data, potential, value,
advantages, actor, evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.profiles.profile import declare_prompts
from agent.progress import Listener
from agent.run.stopping import interruptible
from envs.core.errors import BadInput
from envs.core.tasks import TaskRef
from models.local.declarations import declare_milestones, declare_no_reasons, declare_precision
from training.data.cache import read_rows, rows_digest, write_rows, write_trajectories
from training.data.columns import Column
from training.data.rows import RowEncoder, room_at_play
from training.data.table import DataSummary, summarize
from training.data.thoughts import declare_learned_thoughts, thoughts_in
from training.engine.checkpoints import base_of, load_tokenizer, read_config
from training.engine.language_model import hidden_width
from training.engine.stage_jobs import StageJob, write_job
from training.loop.advantage_columns import ActorRows, check_advantages, select_rows
from training.loop.critics import Critics, score_rows, train_critics
from training.loop.data import PhaseData, ReplayCounts, phase_data, read_episodes, read_runs
from training.loop.durations import ROLLOUTS
from training.loop.evaluation.phases import is_finished
from training.loop.group_update import describe_groups, group_metrics, group_rows
from training.loop.metrics import PhaseMetrics, loss_change, played_in, unreadable_share
from training.loop.parts import read_record, run_location, write_record
from training.loop.phase_context import LogFunction, PhaseContext
from training.loop.rates import warn_of_rates
from training.loop.rollouts import evaluation_config, play_run
from training.loop.rounds import Draw, play_rounds
from training.loop.settings import LoopSettings
from training.loop.stored_values import store_critic_values
from training.mira.credit import step_weights
from training.mira.replay import perplexity
from training.mira.targets import row_advantages

METRICS = "metrics.json"
"""The file that marks a phase as done."""
EVALUATION = "evaluation.json"
"""The location of a phase's evaluation."""
MAX_LOGPROB_DIFFERENCE = 0.5
"""Nats per token. The difference of bfloat16 and float32 is some hundredths, that of another model several nats; the
previous phase's weights may be closer than this."""


def finished(folder: Path) -> PhaseMetrics | None:
    """The metrics that :func:`run_phase` wrote for the phase in *folder*; None if it is not done."""
    path = folder / METRICS
    return read_record(path, PhaseMetrics) if path.exists() else None


async def run_phase(context: PhaseContext, tasks: Sequence[TaskRef], draw: Draw | None = None) -> PhaseMetrics:
    """Plays and trains; then `FOLDER/actor/model` holds the new checkpoint. *draw*: see
    :func:`training.loop.rounds.play_rounds`. Raises TrainingDiverged, Interrupted."""
    with context.part(ROLLOUTS, f"playing {len(tasks)} tasks"):
        runs = await play_rounds(context, tasks, draw)
    with interruptible(), context.running():
        metrics = learn(context, runs)
    changes: dict[str, Any] = {"rollouts": played_in(*runs), "seconds": context.seconds}
    if metrics.groups is not None:
        changes["groups"] = group_metrics(metrics.groups, context.folder / "actor", runs)
        context.log(f"phase {context.number}: {describe_groups(changes['groups'], context.seconds)}")
    metrics = metrics.model_copy(update=changes)
    write_record(context.folder / METRICS, metrics)
    return metrics


async def evaluate(
    folder: Path,
    policy: Path,
    refs: Sequence[TaskRef],
    settings: LoopSettings,
    *,
    listeners: Sequence[Listener] = (),
    log: LogFunction = print,
) -> Path:
    """Evaluates *policy* on *refs* and returns the folder of the run."""
    config = evaluation_config(policy, settings.evaluation, settings.rollouts, settings.seed)
    return await play_run(
        folder / EVALUATION,
        config,
        policy,
        refs,
        shared=settings.shared,
        listeners=listeners,
        log=log,
        server=settings.rollouts.server,
    )


def evaluated(folder: Path) -> bool:
    """Whether the phase in *folder* has a finished evaluation."""
    mark = folder / EVALUATION
    return mark.exists() and is_finished(run_location(mark))


def learn(context: PhaseContext, runs: Sequence[Path]) -> PhaseMetrics:
    """Runs all parts of a phase after the rollouts: data, each critic, the actor. Finished parts are skipped. Call it
    within `context.running()`."""
    data = _data(context, runs)
    if context.number == 1:
        warn_of_rates(context.settings, hidden_width(read_config(context.policy)), len(data.rows), context.log)
    chosen = group_rows(context, data) if context.settings.grouped else _critic_rows(context, data, runs)
    with context.part("actor", f"actor on {len(chosen.rows)} of {len(data.rows)} rows"):
        _actor(context, chosen, data)
    loss = loss_change(context.folder / "actor")
    if loss is not None:
        context.log(f"phase {context.number}: the actor's loss went from {loss.first:.3f} to {loss.last:.3f}")
    advantages = list(zip(chosen.advantages, chosen.outcomes, strict=True))
    return PhaseMetrics(
        phase=context.number,
        trajectories=len(data.trajectories),
        rows=len(data.rows),
        actor_rows=len(chosen.rows),
        nonfinite_rows=chosen.nonfinite,
        unreadable=unreadable_share(data.trajectories[: data.new]),
        replayed=data.replayed,
        potential=chosen.potential,
        value=chosen.value,
        groups=chosen.groups,
        advantage_on_successes=_mean([advantage for advantage, success in advantages if success]),
        advantage_on_failures=_mean([advantage for advantage, success in advantages if not success]),
        actor_loss=loss,
        perplexity=_perplexity(data),
        logprob_difference=logprob_difference(data),
    )


def _data(context: PhaseContext, runs: Sequence[Path]) -> PhaseData:
    """Builds the phase's data from the rollouts, or reads it from `data/`."""
    folder, settings = context.folder / "data", context.settings
    if (folder / "replay.json").exists():
        rows, columns = read_rows(folder / "rows.parquet")
        new, replayed = read_episodes(context.folder)
        return PhaseData(
            trajectories=new + replayed,
            new=len(new),
            rows=rows,
            references=columns[Column.REFERENCE],
            allowed=tuple(bool(value) for value in columns[Column.ALLOWED]),
            replayed=read_record(folder / "replay.json", ReplayCounts),
        )
    with context.part("data", "reading traces and scoring them with the starting policy"):
        selection = read_runs(runs, rejected=settings.keeps_rejected)
        tokenizer = load_tokenizer(context.policy)
        room = room_at_play(read_config(context.policy), tokenizer)
        encoder = RowEncoder(tokenizer, settings.compute.max_tokens, room)
        encoded = encoder.encode(selection.kept)
        if not encoded.rows:
            reasons = ", ".join(f"{count} {reason.value}" for reason, count in selection.left_out.items())
            raise BadInput(
                f"phase {context.number} has nothing to learn from ({reasons or 'all too long'}): see"
                f" {str(runs[0])!r} with `mira show`, and remove it to play it again"
            )
        data = phase_data(
            encoded,
            selection.kept,
            context.past,
            score=lambda rows: context.score("actions", context.policy, rows),
            encoder=encoder,
            settings=settings.replay,
            seed=context.seed,
        )
        check_engine(data, context.policy, context.number, runs[0])
    summary = summarize(selection, encoded)
    write_record(folder / "summary.json", summary)
    write_trajectories(folder / "new.parquet", data.trajectories[: data.new])
    write_trajectories(folder / "replayed.parquet", data.trajectories[data.new :])
    columns = {Column.REFERENCE: data.references, Column.ALLOWED: data.allowed}
    write_rows(folder / "rows.parquet", data.rows, columns)
    write_record(folder / "replay.json", data.replayed)
    context.log(f"phase {context.number}: {describe_data(summary, data)}")
    return data


def check_engine(data: PhaseData, policy: Path, phase: int, run: Path) -> None:
    """Raises BadInput where the new actions were not sampled from *policy*, which scores them."""
    difference = logprob_difference(data)
    if difference is not None and difference > MAX_LOGPROB_DIFFERENCE:
        raise BadInput(
            f"phase {phase}: the rollouts were not sampled from {str(policy)!r}, log-probabilities differ by"
            f" {difference:.2f} per token: does the server of rollouts.server have this policy's base? Remove"
            f" {str(run)!r} and the evaluations of that server, and start again"
        )


def logprob_difference(data: PhaseData) -> float | None:
    """Mean absolute difference, per token, between the new actions' log-probabilities as sampled and as scored here.
    With the same weights it is a rounding error. None without sampled log-probabilities."""
    known = [
        (row.sampled, reference)
        for row, reference in zip(data.rows, data.references, strict=True)
        if row.sampled and row.trajectory < data.new
    ]
    tokens = sum(len(sampled) for sampled, _ in known)
    return sum(abs(sum(sampled) - reference) for sampled, reference in known) / tokens if tokens else None


def describe_data(summary: DataSummary, data: PhaseData) -> str:
    new = data.trajectories[: data.new]
    kept, solved = len(new), sum(trajectory.success for trajectory in new)
    left = sum(summary.left_out.values()) + summary.too_long
    return (
        f"{kept} trajectories ({solved} successes, {left} left out) and {data.replayed.chosen} of "
        f"{data.replayed.held} replayed, {len(data.rows)} rows {rows_digest(data.rows)}"
    )


def _columns(context: PhaseContext, data: PhaseData, critics: Critics) -> tuple[dict[Column, tuple[float, ...]], int]:
    """(critics' outputs and advantage of every row, number of advantages that are not finite). Raises
    TrainingDiverged."""
    with context.part("advantages", "scoring every state with the critics"):
        potential, value = score_rows(context, data, critics)
        advantages = row_advantages(
            data.trajectories, data.rows, potential, value, context.settings.targets, new=data.new
        )
    nonfinite = check_advantages(advantages, data.rows, data.trajectories, context.settings.actor.max_advantage)
    if nonfinite:
        context.log(f"phase {context.number}: {nonfinite} rows are left out, their advantages are NaN or infinite")
    return {Column.POTENTIAL: potential, Column.VALUE: value, Column.ADVANTAGE: advantages}, nonfinite


def _outcomes(data: PhaseData) -> list[bool]:
    """Of every row: whether its trajectory succeeded."""
    return [data.trajectories[row.trajectory].success for row in data.rows]


def _critic_rows(context: PhaseContext, data: PhaseData, runs: Sequence[Path]) -> ActorRows:
    """Trains the critics and selects the rows by their advantages."""
    critics = train_critics(context, data)
    columns, nonfinite = _columns(context, data, critics)
    for run in runs:
        store_critic_values(run, context, data, columns)
    actor = context.settings.actor
    advantages, values = columns[Column.ADVANTAGE], columns[Column.VALUE]
    kept = select_rows(actor.keep, data.rows, data.trajectories, advantages, values, failures_from=actor.failures_from)
    places = [place for place in kept if data.allowed[place]]
    outcomes = _outcomes(data)
    stored = {**columns, Column.REFERENCE: data.references, Column.SUCCESS: outcomes}
    chosen: dict[Column, Sequence[float]] = {
        column: [values[place] for place in places] for column, values in stored.items()
    }
    rows = tuple(data.rows[place] for place in places)
    weights = step_weights(rows, actor.normalizer)
    if weights is not None:
        chosen[Column.WEIGHT] = weights
    return ActorRows(
        rows=rows,
        columns=chosen,
        advantages=advantages,
        outcomes=outcomes,
        nonfinite=nonfinite,
        potential=critics.scores.get("potential"),
        value=critics.scores.get("value"),
    )


def _actor(context: PhaseContext, chosen: ActorRows, data: PhaseData) -> None:
    folder, settings = context.folder / "actor", context.settings
    if not (folder / "model").exists():
        job = StageJob(
            kind="actor",
            start=context.policy.resolve(),
            optimization=settings.actor.optimization,
            objective=settings.actor.objective,
            compute=settings.compute,
            seed=context.seed,
            report_to=settings.report_to,
        )
        write_job(folder, job, chosen.rows, chosen.columns)
    model = context.runner.stage(folder)
    declare_prompts(model, settings.rollouts.profile)
    declare_no_reasons(model)
    declare_milestones(model, "shown" if settings.rollouts.shows_milestones else "hidden")
    declare_precision(model, bf16=settings.compute.bf16)
    own = data.trajectories[: data.new]  # demonstrations and replayed episodes may have had other prompts
    learned = thoughts_in(own, load_tokenizer(context.policy))
    declare_learned_thoughts(model, learned, context.policy, base_of(context.policy), log=context.log)


def _perplexity(data: PhaseData) -> float | None:
    own = [place for place, row in enumerate(data.rows) if row.trajectory < data.new]
    tokens = sum(len(data.rows[place].completion) for place in own)
    return perplexity([sum(data.references[place] for place in own) / tokens]) if tokens else None


def _mean(numbers: Sequence[float]) -> float | None:
    """Mean of the finite numbers; None without any."""
    values = [number for number in numbers if math.isfinite(number)]
    return sum(values) / len(values) if values else None
