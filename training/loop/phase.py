"""One phase, part by part (SPEC §1.7; Alg. 2, the inner order of App. A.3): play, data, potential, value, advantages,
actor, evaluation."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.policy import MAX_ANSWER_TOKENS
from agent.progress import Listener
from agent.stopping import interruptible
from envs.errors import BadInput
from envs.tasks import TaskRef
from models.local_loading import declared_context
from models.prompt_style import declare_style
from models.prompt_tokens import prompt_room
from training.data.cache import read_rows, read_trajectories, rows_digest, write_rows, write_trajectories
from training.data.rows import Row, RowEncoder
from training.data.table import DataSummary, summarize
from training.data.trajectories import Trajectory
from training.loop.advantages import check_advantages, kept_rows
from training.loop.data import PhaseData, ReplayCounts, phase_data, read_runs
from training.loop.metrics import CriticScores, PhaseMetrics, critic_scores, loss_change, played_in
from training.loop.parts import read_record, write_record
from training.loop.playing import evaluation_config, played, rollout_config
from training.loop.settings import LoopSettings
from training.mira.annotate import score_states
from training.mira.critic import Critic
from training.mira.replay import perplexity
from training.mira.targets import row_advantages, row_progress, row_values
from training.stages.checkpoints import load_policy, use_machine
from training.stages.critics import CriticKind
from training.stages.jobs import StageJob, launch, write_job

Teller = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Given:
    """What a phase starts from."""

    number: int
    folder: Path
    policy: Path
    """The checkpoint that plays, and that the actor starts from."""
    critics: dict[CriticKind, Path]
    """Those of the phase before; none in the first."""
    past: tuple[Trajectory, ...]
    """Of all phases before, and demonstrations before those, the oldest first."""
    demonstrations: tuple[Trajectory, ...] = ()
    """Successes that the potential critic learns from in the first phase."""
    listeners: tuple[Listener, ...] = ()
    tell: Teller = print
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def part(self, name: str, told: str) -> Generator[None]:
        """Says what is done, and notes how long it took."""
        self.tell(f"phase {self.number}: {told}")
        begun = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - begun, 2)


def finished(folder: Path) -> PhaseMetrics | None:
    """What :func:`run_phase` told of the phase in *folder*; None where it is not done."""
    path = folder / "metrics.json"
    return read_record(path, PhaseMetrics) if path.exists() else None


async def run_phase(given: Given, tasks: Sequence[TaskRef], settings: LoopSettings) -> PhaseMetrics:
    """Plays and learns; then `FOLDER/actor/model` holds the new checkpoint. Raises TrainingDiverged, Interrupted."""
    folder = given.folder
    with given.part("rollouts", f"playing {len(tasks)} tasks"):
        config = rollout_config(given.policy, settings.rollouts, settings.seed * 1_000 + given.number)
        mark = folder / "rollouts.json"
        run = await played(
            mark,
            config,
            given.policy,
            tasks,
            shared=settings.shared,
            listeners=given.listeners,
            tell=given.tell,
            ray=settings.rollouts.ray,
        )
    with interruptible():
        metrics = learn(given, run, settings)
    metrics = metrics.model_copy(update={"rollouts": played_in(run), "seconds": dict(given.seconds)})
    write_record(folder / "metrics.json", metrics)
    return metrics


async def evaluate(
    folder: Path,
    policy: Path,
    refs: Sequence[TaskRef],
    settings: LoopSettings,
    *,
    listeners: Sequence[Listener] = (),
    tell: Teller = print,
) -> Path:
    """The run in which *policy* was measured on *refs*."""
    config = evaluation_config(policy, settings.evaluation, settings.rollouts, settings.seed)
    mark = folder / "evaluation.json"
    return await played(mark, config, policy, refs, shared=settings.shared, listeners=listeners, tell=tell)


def learn(given: Given, run: Path, settings: LoopSettings) -> PhaseMetrics:
    """Everything of a phase but playing. Passes over what is done: data, each critic, the actor."""
    data = _data(given, run, settings)
    scores: dict[CriticKind, CriticScores | None] = {}
    critics: dict[CriticKind, Path] = {}
    if settings.needs_potential:
        critics["potential"], scores["potential"] = _potential(given, data, settings)
    crossed = settings.needs_value and 1 < settings.value.folds <= len({str(one.task) for one in data.trajectories})
    if settings.needs_value and (not crossed or settings.curriculum.value_band is not None):
        critics["value"], scores["value"] = _value(given, data, settings)
    values = _cross_fitted(given, data, settings) if crossed else None
    if values is not None:
        scores["value"] = _scored_across(values, data, settings)
    columns = _columns(given, data, critics, values, settings)
    places = _actor_rows(data, columns, settings)
    with given.part("actor", f"actor on {len(places)} of {len(data.rows)} rows"):
        _actor(given, data, columns, places, settings)
    loss = loss_change(given.folder / "actor")
    if loss is not None:
        given.tell(f"phase {given.number}: the actor's loss went from {loss.first:.3f} to {loss.last:.3f}")
    outcome = [data.trajectories[row.trajectory].success for row in data.rows]
    return PhaseMetrics(
        phase=given.number,
        trajectories=len(data.trajectories),
        rows=len(data.rows),
        actor_rows=len(places),
        replayed=data.replayed,
        potential=scores.get("potential"),
        value=scores.get("value"),
        advantage_on_successes=_mean([a for a, won in zip(columns["advantage"], outcome, strict=True) if won]),
        advantage_on_failures=_mean([a for a, won in zip(columns["advantage"], outcome, strict=True) if not won]),
        actor_loss=loss,
        perplexity=_perplexity(data),
    )


def _data(given: Given, run: Path, settings: LoopSettings) -> PhaseData:
    """From the rollouts, or as it was left in `data/`."""
    folder = given.folder / "data"
    if (folder / "replay.json").exists():
        rows, columns = read_rows(folder / "rows.parquet")
        trajectories = (*read_trajectories(folder / "new.parquet"), *read_trajectories(folder / "replayed.parquet"))
        return PhaseData(
            trajectories=trajectories,
            new=len(read_trajectories(folder / "new.parquet")),
            rows=rows,
            references=columns["reference"],
            allowed=tuple(value > 0 for value in columns["allowed"]),
            replayed=read_record(folder / "replay.json", ReplayCounts),
        )
    with given.part("data", "reading traces, scoring them with the policy that starts"):
        selection = read_runs([run])
        model, tokenizer = load_policy(given.policy)
        model = model.to(use_machine(settings.compute)).eval()
        encoder = RowEncoder(tokenizer, settings.compute.max_tokens)
        encoded = encoder.encode(selection.kept)
        if not encoded.rows:
            why = ", ".join(f"{count} {reason.value}" for reason, count in selection.left_out.items()) or "all too long"
            raise BadInput(
                f"phase {given.number} has nothing to learn from ({why}): see {str(run)!r} with `mira show`, and remove"
                " it to play it again"
            )
        data = phase_data(
            encoded,
            selection.kept,
            given.past,
            model=model,
            encoder=encoder,
            settings=settings.replay,
            pack_tokens=settings.compute.pack_tokens,
            seed=settings.seed * 1_000 + given.number,
        )
    summary = summarize(selection, encoded)
    write_record(folder / "summary.json", summary)
    write_trajectories(folder / "new.parquet", data.trajectories[: data.new])
    write_trajectories(folder / "replayed.parquet", data.trajectories[data.new :])
    write_rows(
        folder / "rows.parquet",
        data.rows,
        {"reference": data.references, "allowed": [float(fits) for fits in data.allowed]},
    )
    write_record(folder / "replay.json", data.replayed)
    given.tell(f"phase {given.number}: {told_of(summary, data)}")
    return data


def told_of(summary: DataSummary, data: PhaseData) -> str:
    new = data.trajectories[: data.new]
    kept, won = len(new), sum(one.success for one in new)
    left = sum(summary.left_out.values()) + summary.too_long
    return (
        f"{kept} trajectories ({won} successes, {left} left out) and {data.replayed.chosen} of "
        f"{data.replayed.held} replayed, {len(data.rows)} rows {rows_digest(data.rows)}"
    )


def _potential(given: Given, data: PhaseData, settings: LoopSettings) -> tuple[Path, CriticScores | None]:
    """Trained on successes; scored before on those of this phase, which it has not seen."""
    labels = row_progress(data.trajectories, data.rows)
    new = [place for place in sorted(labels) if data.rows[place].trajectory < data.new]
    rows, targets = [data.rows[place] for place in sorted(labels)], [labels[place] for place in sorted(labels)]
    unseen = _Learned([data.rows[place] for place in new], [labels[place] for place in new])
    if given.demonstrations and "potential" not in given.critics:
        more, labelled = _demonstrated(given, data, settings)
        rows, targets = [*rows, *more], [*targets, *labelled]
    return _critic(given, "potential", _Learned(rows, targets), unseen, settings)


def _value(given: Given, data: PhaseData, settings: LoopSettings) -> tuple[Path, CriticScores | None]:
    """Trained on every state of every trajectory. With folds only a curriculum that asks it about tasks needs it."""
    targets = row_values(data.trajectories, data.rows, settings.targets)
    new = [place for place, row in enumerate(data.rows) if row.trajectory < data.new]
    unseen = _Learned([data.rows[place] for place in new], [targets[place] for place in new])
    return _critic(given, "value", _Learned(data.rows, targets), unseen, settings)


@dataclass(frozen=True, slots=True)
class _Learned:
    """Rows and what a critic is to say of each."""

    rows: Sequence[Row]
    targets: Sequence[float]


def _cross_fitted(given: Given, data: PhaseData, settings: LoopSettings) -> tuple[float, ...]:
    """V of every row by a critic that has not learned from any episode of its task; such critics begin from the
    policy's trunk, because that of the phase before may know the replayed ones."""
    targets = row_values(data.trajectories, data.rows, settings.targets)
    fold_of = folds(data.trajectories, settings.value.folds, settings.seed * 1_000 + given.number)
    said = [0.0] * len(data.rows)
    for fold in range(settings.value.folds):
        own = [place for place, row in enumerate(data.rows) if fold_of[row.trajectory] == fold]
        others = [place for place, row in enumerate(data.rows) if fold_of[row.trajectory] != fold]
        learned = _Learned([data.rows[place] for place in others], [targets[place] for place in others])
        folder = given.folder / f"value-fold-{fold + 1}"
        critic = _trained(given, "value", learned, settings, folder=folder, start=given.policy)
        scores = score_states(_loaded(critic, settings), [data.rows[p] for p in own], settings.compute.pack_tokens)
        for place, score in zip(own, scores, strict=True):
            said[place] = score
    return tuple(said)


def _scored_across(values: Sequence[float], data: PhaseData, settings: LoopSettings) -> CriticScores | None:
    """Those of :func:`_cross_fitted` on this phase's rows: each by a critic that has not seen its task."""
    targets = row_values(data.trajectories, data.rows, settings.targets)
    new = [place for place, row in enumerate(data.rows) if row.trajectory < data.new]
    return critic_scores([values[place] for place in new], [targets[place] for place in new])


def folds(trajectories: Sequence[Trajectory], count: int, seed: int) -> tuple[int, ...]:
    """The part of each trajectory, 0 to *count* - 1: as even as can be, and the same for all of one task instance."""
    tasks = sorted({(one.task.suite, one.task.name, one.task.seed) for one in trajectories})
    random.Random(f"folds {seed}").shuffle(tasks)
    parts = {task: place % count for place, task in enumerate(tasks)}
    return tuple(parts[one.task.suite, one.task.name, one.task.seed] for one in trajectories)


def _critic(
    given: Given, kind: CriticKind, learned: _Learned, unseen: _Learned, settings: LoopSettings
) -> tuple[Path, CriticScores | None]:
    """The critic that has learned, and how the one before it did on what it had not seen."""
    before, folder = given.critics.get(kind), given.folder / kind
    how = settings.potential if kind == "potential" else settings.value
    scores = None
    if before is not None:
        said = score_states(_loaded(before, settings), unseen.rows, settings.compute.pack_tokens)
        scores = critic_scores(said, unseen.targets)
    start = before if how.keep and before is not None else given.policy
    return _trained(given, kind, learned, settings, folder=folder, start=start), scores


def _trained(
    given: Given, kind: CriticKind, learned: _Learned, settings: LoopSettings, *, folder: Path, start: Path
) -> Path:
    """The stage in *folder*, passed over where it is done."""
    how = settings.potential if kind == "potential" else settings.value
    with given.part(folder.name, f"{folder.name} critic on {len(learned.rows)} rows"):
        if not (folder / "model").exists():
            job = StageJob(
                kind=kind,
                start=start.resolve(),
                optimization=how.optimization,
                compute=settings.compute,
                seed=settings.seed * 1_000 + given.number,
                report_to=settings.report_to,
            )
            write_job(folder, job, learned.rows, {"target": learned.targets})
        return launch(folder, settings.launcher)


def _columns(
    given: Given,
    data: PhaseData,
    critics: dict[CriticKind, Path],
    values: tuple[float, ...] | None,
    settings: LoopSettings,
) -> dict[str, tuple[float, ...]]:
    """What the critics say of every row, of V *values* instead where they are given, and its advantage; written beside
    the rows. Raises TrainingDiverged."""
    nothing = (0.0,) * len(data.rows)
    columns: dict[str, tuple[float, ...]] = {"potential": nothing, "value": values or nothing}
    asked: tuple[CriticKind, ...] = ("potential", "value") if values is None else ("potential",)
    with given.part("advantages", "what the critics say of every state"):
        for kind, folder in ((kind, critics[kind]) for kind in asked if kind in critics):
            columns[kind] = score_states(_loaded(folder, settings), data.rows, settings.compute.pack_tokens)
        found = row_advantages(data.trajectories, data.rows, columns["potential"], columns["value"], settings.targets)
    columns["advantage"] = found
    check_advantages(found, data.rows, data.trajectories, settings.actor.max_advantage)
    return columns


def _actor_rows(data: PhaseData, columns: dict[str, tuple[float, ...]], settings: LoopSettings) -> list[int]:
    kept = kept_rows(settings.actor.keep, data.rows, data.trajectories, columns["advantage"], columns["value"])
    return [place for place in kept if data.allowed[place]]


def _actor(
    given: Given, data: PhaseData, columns: dict[str, tuple[float, ...]], places: Sequence[int], settings: LoopSettings
) -> None:
    folder = given.folder / "actor"
    if not (folder / "model").exists():
        job = StageJob(
            kind="actor",
            start=given.policy.resolve(),
            optimization=settings.actor.optimization,
            objective=settings.actor.objective,
            compute=settings.compute,
            seed=settings.seed * 1_000 + given.number,
            report_to=settings.report_to,
        )
        chosen = {name: [values[place] for place in places] for name, values in columns.items()}
        chosen["reference"] = [data.references[place] for place in places]
        chosen["success"] = [float(data.trajectories[data.rows[place].trajectory].success) for place in places]
        write_job(folder, job, [data.rows[place] for place in places], chosen)
    declare_style(launch(folder, settings.launcher), settings.rollouts.prompt_style)


def _demonstrated(given: Given, data: PhaseData, settings: LoopSettings) -> tuple[Sequence[Row], Sequence[float]]:
    """Of the demonstrations that are not among the replayed already."""
    replayed = {one.identity for one in data.trajectories[data.new :]}
    shown = [one for one in given.demonstrations if one.identity not in replayed]
    model, tokenizer = load_policy(given.policy)
    room = prompt_room(declared_context(model, tokenizer), MAX_ANSWER_TOKENS)
    rows = RowEncoder(tokenizer, settings.compute.max_tokens, room).encode(shown).rows
    labels = row_progress(shown, rows)
    return [rows[place] for place in sorted(labels)], [labels[place] for place in sorted(labels)]


def _loaded(folder: Path, settings: LoopSettings) -> Any:
    return Critic.load(folder).to(use_machine(settings.compute)).eval()


def _perplexity(data: PhaseData) -> float | None:
    own = [place for place, row in enumerate(data.rows) if row.trajectory < data.new]
    tokens = sum(len(data.rows[place].action) for place in own)
    return perplexity([sum(data.references[place] for place in own) / tokens]) if tokens else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
