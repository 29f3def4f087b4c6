"""`python -m training.stages FOLDER`: what the folder asks for, a stage (:mod:`training.stages.jobs`), scores
(:mod:`training.stages.scoring`) or a fine-tuning (:mod:`training.stages.sft`)."""

from __future__ import annotations

import sys
from pathlib import Path

from training.stages import scoring, sft
from training.stages.jobs import run_job
from training.stages.launched import run
from training.stages.watching import Watcher


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
