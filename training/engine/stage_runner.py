"""Runs the stages and scoring passes of a phase: in this process, or in the processes of a launcher."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from training.data.rows import Row
from training.engine.launcher import release_gpu
from training.engine.progress import Watcher, unwatched
from training.engine.scoring import (
    ScoreKind,
    TokenScores,
    score,
    score_launched,
    token_scores,
    token_scores_launched,
)
from training.engine.settings import Compute
from training.engine.shared_base_lora import SharedBaseCache
from training.engine.stage_jobs import launch, read_job
from training.engine.workers import Workers


class StageRunner:
    """With a launcher, its processes start at the first job and stay until the end: a phase starts them once, and not
    for each of its critics, actor and scoring passes. With `compute.shared_base` the base is loaded once, too."""

    def __init__(self, launcher: Sequence[str], folder: Path, watch: Watcher = unwatched) -> None:
        """*folder*: for temporary files of launched processes."""
        self._folder = folder
        self._watch = watch
        self._cache = SharedBaseCache()
        self._workers = Workers(launcher, folder / "workers") if launcher else None

    def stage(self, folder: Path) -> Path:
        """Runs the stage in *folder* unless it is done, and returns its model's folder. Raises as
        :func:`training.engine.stage_jobs.launch` does."""
        if (folder / "model").exists():
            return folder / "model"
        if self._workers is not None:
            self._workers.run(folder)
            return folder / "model"
        job = read_job(folder)
        return launch(folder, models=self._cache.get(job.start, job.compute), watch=self._watch)

    def score(self, kind: ScoreKind, checkpoint: Path, rows: Sequence[Row], compute: Compute) -> tuple[float, ...]:
        """Scores *rows* with a policy or critic: one number per row, in their order. Raises BadInput."""
        if self._workers is not None:
            folder = self._folder / "scoring"
            return score_launched(kind, checkpoint, rows, compute, run=self._workers.run, folder=folder)
        return score(kind, checkpoint, rows, compute, self._watch, cache=self._cache)

    def token_scores(self, checkpoint: Path, rows: Sequence[Row], compute: Compute) -> TokenScores:
        """A policy's log-probability of every completion token of *rows*, in their order. Raises BadInput."""
        if self._workers is not None:
            folder = self._folder / "scoring"
            return token_scores_launched(checkpoint, rows, compute, run=self._workers.run, folder=folder)
        return token_scores(checkpoint, rows, compute, self._watch, cache=self._cache)

    def close(self, *, failed: bool = False) -> None:
        """Ends the launched processes and frees the memory of models."""
        if self._workers is not None:
            self._workers.close(failed=failed)
        self._cache.clear()
        release_gpu()


@contextmanager
def stage_runner(launcher: Sequence[str], folder: Path, watch: Watcher = unwatched) -> Generator[StageRunner]:
    """A runner for the body."""
    runner = StageRunner(launcher, folder, watch)
    try:
        yield runner
    except BaseException:
        runner.close(failed=True)
        raise
    runner.close()
