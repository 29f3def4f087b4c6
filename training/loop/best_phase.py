"""The phase of a training run with the highest success on the run's own held-out tasks, and its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from envs.core.errors import BadInput
from envs.core.record import Record
from judges.statistics import Interval
from training.loop.loop import CONFIG, Progress
from training.loop.metrics import PhaseMetrics, PlayedRun
from training.loop.parts import read_record
from training.starts import start_folder

PROGRESS = "progress.json"


class BestPhase(Record):
    """The result of :func:`best_phase`."""

    phase: int
    """0 is the start."""
    checkpoint: str
    """Folder of its policy."""
    kept: bool
    """Whether the folder is there; `retain = "last"` removes the actors of earlier phases."""
    successes: int
    judged: int
    """Held-out episodes with a verdict."""
    rate: float
    interval: Interval
    """Wilson's 95 % interval of `rate`; it does not allow for the choice among phases."""
    start: float | None
    """Success of the start on the same tasks; None if it was not measured."""
    compared: int
    """Number of phases with an evaluation, the start included."""


def best_phase(run: Path) -> BestPhase:
    """The phase with the highest success rate among those with an evaluation; of equal ones the earliest. Raises
    BadInput where *run* is no run of `mira train mira` or `mgrpo`, or has no evaluation with a judged episode."""
    if not (run / PROGRESS).exists():
        raise BadInput(f"{str(run)!r} holds no run of `mira train mira` or `mgrpo` with an evaluation of its start")
    phases = read_record(run / PROGRESS, Progress).phases
    measured = [(phase, phase.evaluation) for phase in phases if phase.evaluation and phase.evaluation.judged]
    if not measured:
        raise BadInput(f"{str(run)!r} has no evaluation with a judged episode, by which phases could be compared")
    best, played = max(measured, key=_rank)
    checkpoint = run / f"phase-{best.phase}" / "actor" / "model" if best.phase else _start_of(run)
    return BestPhase(
        phase=best.phase,
        checkpoint=str(checkpoint),
        kept=checkpoint.exists(),
        successes=played.successes,
        judged=played.judged,
        rate=played.rate,
        interval=played.interval,
        start=next((own.rate for phase, own in measured if phase.phase == 0), None),
        compared=len(measured),
    )


def _rank(measured: tuple[PhaseMetrics, PlayedRun]) -> tuple[float, int]:
    phase, played = measured
    return played.rate, -phase.phase


def _start_of(run: Path) -> Path:
    """The checkpoint that the run started from. Raises BadInput."""
    try:
        values: Any = json.loads((run / CONFIG).read_text(encoding="utf-8"))
        start = cast("dict[str, Any]", values)["start"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{str(run / CONFIG)!r} does not name the start of the run ({type(error).__name__})") from error
    return start_folder(str(start))
