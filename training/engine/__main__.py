"""`python -m training.engine FOLDER`: runs the job in FOLDER, which is a stage (:mod:`training.engine.stage_jobs`), a
scoring pass (:mod:`training.engine.scoring`) or a fine-tuning (:mod:`training.engine.sft`)."""

from __future__ import annotations

import sys
from pathlib import Path

from training.engine import scoring, sft
from training.engine.progress import Watcher
from training.engine.stage_jobs import run_job
from training.engine.worker import run


def work(folder: Path, watch: Watcher) -> None:
    """Raises BadInput, TrainingDiverged."""
    if (folder / scoring.JOB).exists():
        scoring.run_scoring(folder, watch)
    elif (folder / sft.JOB).exists():
        sft.run_supervised(folder, watch)
    else:
        run_job(folder, watch=watch)


if __name__ == "__main__":
    run(work, sys.argv[1:])
