"""Writes scalars of phases for TensorBoard, if `report_to` names it: `tensorboard --logdir OUT/tensorboard`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from envs.core.errors import BadInput
from models.optional import install_command
from training.loop.metrics import CriticScores, GroupMetrics, PhaseMetrics, PlayedRun

TENSORBOARD = "tensorboard"
"""Its name in `report_to`, its module, and its folder in the run's."""


def check_trackers(report_to: Sequence[str]) -> None:
    """Raises BadInput where TensorBoard is requested but not installed."""
    if TENSORBOARD in report_to and find_spec(TENSORBOARD) is None:
        raise BadInput(f"report_to: tensorboard is not installed: {install_command('training')}")


@contextmanager
def phase_tracker(out: Path, report_to: Sequence[str]) -> Generator[Callable[[PhaseMetrics], None]]:
    """Yields a function that writes a phase's scalars; it does nothing if *report_to* does not name TensorBoard.

    A resumed loop writes all of its phases again. Its first event makes readers drop the events of earlier processes,
    so that each phase appears once.
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
