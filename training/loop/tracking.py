"""Writes scalars of phases for the trackers that `report_to` names: TensorBoard (`tensorboard --logdir
OUT/tensorboard`), Weights & Biases, MLflow. Other trackers of transformers get the losses of the stages only."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from envs.core.errors import BadInput
from envs.core.record import Record
from training.engine.trackers import TENSORBOARD, tracker_names
from training.loop.metrics import CriticScores, GroupMetrics, PhaseMetrics, PlayedRun
from training.loop.parts import load_or_compute, read_record, write_record

REPORTED = "trackers.json"
Write = Callable[[int, Mapping[str, float]], None]
"""Writes the scalars of a phase."""


class Reported(Record):
    """What a loop has written to a tracker that keeps its runs elsewhere, by the tracker's name: `trackers.json`."""

    runs: dict[str, str] = Field(default_factory=dict)
    """Id of the loop's run."""
    phases: dict[str, int] = Field(default_factory=dict)
    """The last phase."""


@contextmanager
def phase_tracker(out: Path, report_to: Sequence[str]) -> Generator[Callable[[PhaseMetrics], None]]:
    """Yields a function that writes a phase's scalars to the trackers of *report_to* that have a writer here. A resumed
    loop writes all of its phases again, and each appears once. Raises BadInput where a tracker cannot begin a run."""
    with ExitStack() as stack:
        writes = [stack.enter_context(_WRITERS[name](out)) for name in tracker_names(report_to) if name in _WRITERS]

        def write(metrics: PhaseMetrics) -> None:
            for one in writes:
                one(metrics.phase, scalars(metrics))

        yield write


@contextmanager
def _tensorboard(out: Path) -> Generator[Write]:
    """The first event makes readers drop the events of earlier processes, so that each phase appears once."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(out / TENSORBOARD), purge_step=0) as writer:

        def write(phase: int, values: Mapping[str, float]) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, phase)
            writer.flush()

        yield write


@contextmanager
def _wandb(out: Path) -> Generator[Write]:
    """A run of its own, `OUT phases`, in the project of the stages' runs (`WANDB_PROJECT`). It is open only while a
    phase is written: the stages would log into an open run."""
    wandb: Any = import_module("wandb")

    def opened(run: str) -> Any:
        project = os.environ.get("WANDB_PROJECT", "huggingface")
        name = f"{out.name} phases"
        return wandb.init(project=project, name=name, id=run, resume="allow", dir=str(out), reinit="create_new")

    def begun() -> str:
        run = secrets.token_hex(4)
        opened(run).finish()
        return run

    def log(run: str, phase: int, values: Mapping[str, float]) -> None:
        own = opened(run)
        own.define_metric("*", step_metric="phase")
        own.log({**values, "phase": phase})
        own.finish()

    yield _once(out, "wandb", begun, log)


@contextmanager
def _mlflow(out: Path) -> Generator[Write]:
    """A run of its own, `OUT phases`, in the experiment of the stages' runs (`MLFLOW_EXPERIMENT_NAME`)."""
    client: Any = import_module("mlflow").MlflowClient()

    def begun() -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "Default")
        known = client.get_experiment_by_name(name)
        experiment = client.create_experiment(name) if known is None else known.experiment_id
        run: str = client.create_run(experiment, run_name=f"{out.name} phases").info.run_id
        return run

    def log(run: str, phase: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            client.log_metric(run, name, value, step=phase)
        client.set_terminated(run)

    yield _once(out, "mlflow", begun, log)


_WRITERS: Final[Mapping[str, Callable[[Path], AbstractContextManager[Write]]]] = {
    TENSORBOARD: _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
}


def _once(
    out: Path, tracker: str, begun: Callable[[], str], log: Callable[[str, int, Mapping[str, float]], None]
) -> Write:
    """Writes with *log* each phase that was not written before, to the run of an earlier process or a new one, whose id
    *begun* returns. Raises BadInput where it begins none."""
    path = out / REPORTED
    known = load_or_compute(path, Reported, Reported)
    if tracker not in known.runs:
        try:
            run = begun()
        except Exception as error:  # errors of a server, a key or a store have classes of the library's own
            raise BadInput(f"report_to: {tracker} began no run: {' '.join(str(error).split())[:300]}") from error
        write_record(path, known.model_copy(update={"runs": {**known.runs, tracker: run}}))

    def write(phase: int, values: Mapping[str, float]) -> None:
        reported = read_record(path, Reported)
        if phase > reported.phases.get(tracker, -1):
            log(reported.runs[tracker], phase, values)
            phases = {**reported.phases, tracker: phase}
            write_record(path, reported.model_copy(update={"phases": phases}))

    return write


def scalars(metrics: PhaseMetrics) -> dict[str, float]:
    """The phase's numbers by name. Unknown ones are left out."""
    values: dict[str, float | None] = {}
    for name, played in (("evaluation", metrics.evaluation), ("rollouts", metrics.rollouts)):
        values |= _played(name, played)
    for name, critic in (("potential", metrics.potential), ("value", metrics.value)):
        values |= _critic(name, critic)
    values["rollouts/unreadable"] = metrics.unreadable
    values["advantage/on_successes"] = metrics.advantage_on_successes
    values["advantage/on_failures"] = metrics.advantage_on_failures
    if metrics.phase:
        values |= {f"replay/{name}": float(count) for name, count in metrics.replayed}
        values |= {"actor/rows": metrics.actor_rows, "actor/perplexity": metrics.perplexity}
    values |= _groups(metrics.groups)
    return dict(_known(values))


def _played(name: str, played: PlayedRun | None) -> dict[str, float | None]:
    if played is None:
        return {}
    return {
        f"{name}/success_rate": played.rate if played.judged else None,
        f"{name}/steps": played.steps if played.judged else None,
        f"{name}/progress": played.progress,
        f"{name}/broken": float(played.broken),
    }


def _critic(name: str, scores: CriticScores | None) -> dict[str, float | None]:
    if scores is None:
        return {}
    return {f"{name}/absolute_error": scores.absolute_error, f"{name}/spearman": scores.spearman}


def _groups(groups: GroupMetrics | None) -> dict[str, float | None]:
    if groups is None:
        return {}
    return {
        "groups/reward": groups.counts.reward,
        "groups/informative": groups.counts.share,
        "groups/rounds": float(groups.rounds),
        "groups/kl": groups.kl,
        "groups/clipped": groups.clipped,
        "groups/browser_share": groups.browser_share,
    }


def _known(values: dict[str, float | None]) -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if value is not None:
            yield name, value
