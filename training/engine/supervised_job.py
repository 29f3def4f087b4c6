"""What a fine-tuning is asked to do."""

from __future__ import annotations

from pathlib import Path

from envs.core.record import Record
from training.engine.settings import Compute, Optimization


class SupervisedJob(Record):
    """A fine-tuning job, without its rows."""

    start: Path
    optimization: Optimization
    compute: Compute = Compute()
    seed: int = 0
    steps: int | None = None
    """Optimizer steps; None: as many as the epochs take."""
    patience: int = 1
    """With validation rows: epochs without a lower loss after which training ends."""
    report_to: tuple[str, ...] = ()
    """Trackers of transformers."""
