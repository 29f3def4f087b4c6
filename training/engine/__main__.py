"""`python -m training.engine FOLDER`: runs the job in FOLDER, which is a stage (:mod:`training.engine.stage_jobs`), a
scoring pass (:mod:`training.engine.scoring`), a fine-tuning (:mod:`training.engine.sft`), or a session of such jobs
(:mod:`training.engine.workers`)."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from training.engine import scoring, sft, workers
from training.engine.progress import Watcher
from training.engine.shared_base_lora import SharedBaseCache
from training.engine.stage_jobs import read_job, run_job
from training.engine.worker import run


def work(folder: Path, watch: Watcher) -> None:
    """Raises BadInput, TrainingDiverged."""
    if (folder / workers.SESSION).exists():
        workers.run_session(folder, partial(_job, watch, SharedBaseCache()))
    else:
        _job(watch, SharedBaseCache(), folder)


def _job(watch: Watcher, cache: SharedBaseCache, folder: Path) -> None:
    if (folder / scoring.JOB).exists():
        scoring.run_scoring(folder, watch, cache)
    elif (folder / sft.JOB).exists():
        sft.run_supervised(folder, watch)
    else:
        job = read_job(folder)
        run_job(folder, cache.get(job.start, job.compute), watch)


if __name__ == "__main__":
    run(work, sys.argv[1:])
