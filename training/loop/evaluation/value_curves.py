"""The critics' curves of one episode: V and P of the state before each step, with the milestones met."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from agent.inspection.critic_values import FILE, CriticValues, StateValues, read_critic_values
from agent.inspection.report.episodes import Cut, EpisodeMaker, Material
from agent.inspection.report.pictures import Gallery
from agent.inspection.report.svg import element
from agent.inspection.report.timeline import timeline
from agent.run.discover_traces import EpisodeFile, discover_traces
from envs.core.action_languages import language
from envs.core.errors import BadInput
from envs.core.record import Record
from envs.core.trace_store import BlobStore, Trace
from judges.trace_ratings import reached_after
from training.data.rows import Row, RowEncoder, room_at_play
from training.data.trajectories import LeftOut, Trajectory, trajectory
from training.loop.critic_states import with_milestones
from training.loop.parts import read_record
from training.loop.settings import LoopSettings
from training.mira.targets import row_progress
from training.starts import start_folder

_STYLE = (
    ".timeline{font:12.5px sans-serif}.timeline text{fill:#333}.paper{fill:#fff}.disc{fill:#dfe8fb}"
    ".step.failed .disc,.step.timeout .disc,.step.not_found .disc,.step.uncertain .disc{fill:#f6dfc6}"
    ".ring{fill:none;stroke:#c0392b;stroke-width:2}.timeline .flag{fill:#c0392b}.cell{fill:#eef0f3}"
    ".cell.on{fill:#bfe3c6}.cell.new{fill:#2e9e4f}.loop{fill:none;stroke:#7a4bc2;stroke-width:2}.grid{stroke:#ddd}"
    ".curve{fill:none;stroke-width:2}.curve.value{stroke:#1664c0}.curve.potential{stroke:#7a4bc2}"
    ".timeline .value,.point.value{fill:#1664c0}.timeline .potential,.point.potential{fill:#7a4bc2}"
    ".timeline .curve{fill:none}"
)


class CurvePoint(Record):
    """The state before one step."""

    step: int
    action: str
    value: float | None
    """V, in [0, 1]."""
    potential: float | None
    """P, in [0, 1]."""
    progress: float | None
    """The label that P is trained towards; None for a failure and without milestones."""
    done: int
    """Milestones done in this state."""
    gained: tuple[str, ...]
    """Milestones that the step reached, as the state after it shows."""


class EpisodeCurves(Record):
    """One episode."""

    run: str
    episode: str
    task: str
    outcome: str
    milestones: int
    critics: str
    """Where the values came from: a phase's folder, or the run's own `critics.json`."""
    points: tuple[CurvePoint, ...]


def read_curves(place: Path, phase: Path | None) -> tuple[EpisodeCurves, EpisodeFile, tuple[StateValues, ...]]:
    """The curves of the only episode at *place*, a trace or a run of one episode; its file; the critics' values.

    *phase*: a phase's folder, whose critics score the episode; None takes the values that training stored with the run.
    Raises BadInput where there is not exactly one episode, or no critic.
    """
    files = discover_traces([place])
    if len(files) != 1:
        raise BadInput(f"--curves {str(place)!r} holds {len(files)} episodes: name one file of its folder `episodes`")
    file = files[0]
    trace = file.read()
    episode = trajectory(trace, file.blobs)
    if isinstance(episode, LeftOut):
        raise BadInput(f"--curves {str(place)!r}: an episode without curves ({episode.value})")
    stored = _stored(file) if phase is None else _scored(episode, phase)
    values = stored.episodes[episode.episode_id]
    return _curves(trace, episode, values, stored.critics), file, values


def _stored(file: EpisodeFile) -> CriticValues:
    values = read_critic_values(file.folder)
    if file.path.stem not in values.episodes:
        raise BadInput(
            f"{str(file.folder / FILE)!r} has no values of this episode: name the phase whose critics are to score it"
            " with --critics FOLDER/phase-N"
        )
    return values


def _scored(episode: Trajectory, phase: Path) -> CriticValues:
    """Scores *episode* with the critics of *phase*. With folds, V is of a critic that has not learned from its task."""
    from training.engine.checkpoints import load_tokenizer, read_config  # imports PyTorch, which reading does not need
    from training.loop.critics import fold_name, folds

    settings = read_record(phase.parent / "config.json", LoopSettings)
    part = folds([episode], settings.value.folds, settings.seed)[0]
    names = {"potential": "potential", "value": "value" if settings.value.folds == 1 else fold_name(part)}
    models = {kind: phase / name / "model" for kind, name in names.items() if (phase / name / "model").exists()}
    if not models:
        raise BadInput(f'--critics {str(phase)!r} holds no critics; `retain = "all"` keeps those of earlier phases')
    policy = _policy_of(phase, settings)
    tokenizer = load_tokenizer(policy)
    room = room_at_play(read_config(policy), tokenizer)
    rows = RowEncoder(tokenizer, settings.compute.max_tokens, room).encode([episode]).rows
    if not rows:
        raise BadInput(
            f"a prompt of this episode is longer than compute.max_tokens, {settings.compute.max_tokens}: choose another"
            " episode, or critics that were trained with longer prompts"
        )
    known = with_milestones(rows, [episode], tokenizer)
    shown = {"potential": settings.potential.milestones, "value": settings.value.milestones}
    scores = {kind: _outputs(model, known if shown[kind] else rows, settings) for kind, model in models.items()}
    states = tuple(
        StateValues(
            step=episode.decisions[row.time].step,
            value=scores["value"][place] if "value" in scores else None,
            potential=scores["potential"][place] if "potential" in scores else None,
        )
        for place, row in enumerate(rows)
    )
    return CriticValues(critics=str(phase), episodes={episode.episode_id: states})


def _policy_of(phase: Path, settings: LoopSettings) -> Path:
    """A checkpoint with the tokenizer that the critics of *phase* were trained with: all policies of a run have one."""
    actor = phase / "actor" / "model"
    if actor.exists():
        return actor
    return start_folder(settings.start)


def _outputs(critic: Path, rows: Sequence[Row], settings: LoopSettings) -> tuple[float, ...]:
    from transformers.utils import logging

    from training.engine.scoring import score

    logging.disable_progress_bar()
    return score("states", critic, rows, settings.compute)


def _curves(trace: Trace, episode: Trajectory, values: Sequence[StateValues], critics: str) -> EpisodeCurves:
    by_step = {state.step: state for state in values}
    rows = [Row((0,), (0,), 0, time) for time in range(len(episode.decisions))]
    labels = row_progress([episode], rows)
    gained = _gained(trace)
    points: list[CurvePoint] = []
    starts = [decision.step for decision in episode.decisions]
    for time, decision in enumerate(episode.decisions):
        until = starts[time + 1] if time + 1 < len(starts) else None
        state = by_step.get(decision.step, StateValues(step=decision.step))
        points.append(
            CurvePoint(
                step=decision.step,
                action="" if decision.action is None else language("program").show(decision.action),
                value=state.value,
                potential=state.potential,
                progress=labels.get(time),
                done=episode.done[time],
                gained=tuple(
                    name for step, name in gained if step >= decision.step and (until is None or step < until)
                ),
            )
        )
    return EpisodeCurves(
        run=episode.run_id,
        episode=episode.episode_id,
        task=episode.task.id,
        outcome="success" if episode.success else "failure",
        milestones=episode.milestones,
        critics=critics,
        points=tuple(points),
    )


def _gained(trace: Trace) -> list[tuple[int, str]]:
    """(step, text of a milestone that it reached first), in the order of steps."""
    plans = [plan.milestones for plan in trace.plans] or [trace.header.reference_milestones]
    texts = {milestone.id: milestone.text for plan in plans for milestone in plan}
    reached = [(number, texts.get(name, name)) for name, number in reached_after(trace).items() if number]
    return sorted((trace.steps[number - 1].intent.step, text) for number, text in reached)


def picture(file: EpisodeFile, values: Sequence[StateValues]) -> str:
    """The time line of the episode with its curves, as one SVG."""
    trace = file.read()
    view = EpisodeMaker(Cut(1, pictures=False, no_pictures=True), Gallery()).view(
        Material("step", trace, BlobStore(file.folder / "blobs"), None, None)
    )
    steps = [pair.step for pair in view.pairs if pair.step is not None]
    drawn = timeline("step", steps, view.milestones, view.failure, values)
    return str(element("svg", element("style", Markup(_STYLE)), drawn, xmlns="http://www.w3.org/2000/svg"))
