"""Phases as scalars for TensorBoard, where `report_to` asks for it: `tensorboard --logdir OUT/tensorboard`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from envs.core.errors import BadInput
from training.loop.metrics import CriticScores, PhaseMetrics, PlayedRun

TENSORBOARD = "tensorboard"
"""Its name in `report_to`, its module, and its folder in the run's."""


def check_trackers(report_to: Sequence[str]) -> None:
    """Raises BadInput where TensorBoard is asked for and not installed."""
    if TENSORBOARD in report_to and find_spec(TENSORBOARD) is None:
        raise BadInput("report_to: tensorboard is not installed: pip install 'mira-web[training]'")


@contextmanager
def phase_tracker(out: Path, report_to: Sequence[str]) -> Generator[Callable[[PhaseMetrics], None]]:
    """Gives what writes a phase's scalars at the phase's number; it does nothing where *report_to* does not ask.

    A loop that goes on writes all its phases again, and its first event tells readers to forget what earlier processes
    wrote: each phase stands there once.
    """
    if TENSORBOARD not in report_to:
        yield lambda _: None
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(out / TENSORBOARD), purge_step=0) as writer:

        def write(metrics: PhaseMetrics) -> None:
            for name, value in scalars(metrics).items():
                writer.add_scalar(name, value, metrics.phase)
            writer.flush()

        yield write


def scalars(metrics: PhaseMetrics) -> dict[str, float]:
    """By name; what is not known of the phase is left out, never 0."""
    told: dict[str, float | None] = {}
    for name, played in (("evaluation", metrics.evaluation), ("rollouts", metrics.rollouts)):
        told |= _played(name, played)
    for name, critic in (("potential", metrics.potential), ("value", metrics.value)):
        told |= _critic(name, critic)
    told["advantage/on_successes"] = metrics.advantage_on_successes
    told["advantage/on_failures"] = metrics.advantage_on_failures
    if metrics.phase:
        told |= {f"replay/{name}": float(count) for name, count in metrics.replayed}
        told |= {"actor/rows": metrics.actor_rows, "actor/perplexity": metrics.perplexity}
    return dict(_known(told))


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


def _known(told: dict[str, float | None]) -> Iterator[tuple[str, float]]:
    for name, value in told.items():
        if value is not None:
            yield name, value
