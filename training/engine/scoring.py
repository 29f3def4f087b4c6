"""Scores of a checkpoint for the rows of a phase: loads its model and runs the passes of
:mod:`training.engine.annotate` between two stages, in this process or divided among a launcher's processes, which
exchange rows and scores as files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from accelerate.utils import gather_object

from envs.core.atomic_write import replacing, write_atomically
from envs.core.errors import BadInput
from envs.core.record import Record
from training.data.cache import read_rows, write_rows
from training.data.rows import Row
from training.engine.annotate import score_completions, score_states, score_tokens
from training.engine.checkpoints import is_adapter, load_policy, select_device
from training.engine.critic_model import Critic
from training.engine.half_weights import hold_frozen_in_bfloat16
from training.engine.processes import process_state
from training.engine.progress import Watcher, unwatched
from training.engine.settings import Compute
from training.engine.shared_base_lora import SharedBaseCache

JOB = "score.json"
SCORES = "scores.json"

ScoreKind = Literal["actions", "states"]
"""`actions`: a policy's `log π(a|s)` of each row; `states`: a critic's output for each row's state."""
TOKENS: Final = "tokens"
"""The kind of a scoring job for a policy's `log π` of each completion token."""
TokenScores = tuple[tuple[float, ...], ...]


class ScoreJob(Record):
    """A scoring job for the processes of a launcher; its rows are in a file beside it."""

    kind: ScoreKind | Literal["tokens"]
    checkpoint: Path
    compute: Compute


def score(
    kind: ScoreKind,
    checkpoint: Path,
    rows: Sequence[Row],
    compute: Compute,
    watch: Watcher = unwatched,
    *,
    cache: SharedBaseCache | None = None,
) -> tuple[float, ...]:
    """Scores *rows* in this process: one number per row, in their order. *cache*: of the base of `compute.shared_base`.
    Raises BadInput."""
    model = _loaded(kind, checkpoint, compute, cache or SharedBaseCache())
    scored = score_states if isinstance(model, Critic) else score_completions
    return scored(model, rows, compute.pack_tokens, watch, bf16=compute.bf16)


def token_scores(
    checkpoint: Path,
    rows: Sequence[Row],
    compute: Compute,
    watch: Watcher = unwatched,
    *,
    cache: SharedBaseCache | None = None,
) -> TokenScores:
    """A policy's `log π` of every completion token of *rows*, otherwise like :func:`score`."""
    model = _loaded("actions", checkpoint, compute, cache or SharedBaseCache())
    return score_tokens(model, rows, compute.pack_tokens, watch, bf16=compute.bf16)


def score_launched(
    kind: ScoreKind,
    checkpoint: Path,
    rows: Sequence[Row],
    compute: Compute,
    *,
    run: Callable[[Path], None],
    folder: Path,
) -> tuple[float, ...]:
    """Scores *rows* like :func:`score`, in launched processes, each with the full model. *run* runs the job in a folder
    (:meth:`training.engine.workers.Workers.run`); *folder* is its temporary folder. Raises BadInput."""
    job = ScoreJob(kind=kind, checkpoint=checkpoint.resolve(), compute=compute)
    return tuple(map(float, _launched(job, rows, run, folder)))


def token_scores_launched(
    checkpoint: Path, rows: Sequence[Row], compute: Compute, *, run: Callable[[Path], None], folder: Path
) -> TokenScores:
    """Scores *rows* like :func:`token_scores`, otherwise like :func:`score_launched`."""
    job = ScoreJob(kind=TOKENS, checkpoint=checkpoint.resolve(), compute=compute)
    return tuple(tuple(map(float, own)) for own in _launched(job, rows, run, folder))


def _launched(job: ScoreJob, rows: Sequence[Row], run: Callable[[Path], None], folder: Path) -> list[Any]:
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "rows.parquet", rows, {})
    write_atomically(folder / JOB, job.model_dump_json(indent=1) + "\n", sync=False)
    (folder / SCORES).unlink(missing_ok=True)
    run(folder)
    if not (folder / SCORES).exists():
        raise BadInput(f"the launched processes succeeded but wrote no scores to {str(folder)!r}")
    scores: list[Any] = json.loads((folder / SCORES).read_text(encoding="utf-8"))
    shutil.rmtree(folder)
    return scores


def run_scoring(folder: Path, watch: Watcher = unwatched, cache: SharedBaseCache | None = None) -> None:
    """Scores this process's share of the rows in *folder*; the first process collects and writes all scores. *cache*:
    see :func:`score`."""
    try:
        job = ScoreJob.model_validate_json((folder / JOB).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(folder / JOB)!r} cannot be read: {' '.join(str(error).split())[:200]}") from error
    rows, _ = read_rows(folder / "rows.parquet")
    processes = process_state(cpu=job.compute.cpu)
    rank, world_size = processes.process_index, processes.num_processes
    own_watch = watch if rank == 0 else unwatched
    mine = rows[rank::world_size]
    own: tuple[Any, ...]
    if job.kind == TOKENS:
        own = token_scores(job.checkpoint, mine, job.compute, own_watch, cache=cache)
    else:
        own = score(job.kind, job.checkpoint, mine, job.compute, own_watch, cache=cache)
    parts: list[tuple[Any, ...]] = gather_object([own])
    if rank == 0:
        scores: list[Any] = [0.0] * len(rows)
        for place, part in enumerate(parts):
            scores[place::world_size] = part
        with replacing(folder / SCORES) as unfinished:
            unfinished.write_text(json.dumps(scores), encoding="utf-8")


def _loaded(kind: ScoreKind, checkpoint: Path, compute: Compute, cache: SharedBaseCache) -> Any:
    """Loads the model as a stage does. An adapter of shared-base LoRA stays unmerged, since merging would round."""
    device = select_device(compute)
    models = cache.get(checkpoint, compute)
    if models is not None and (kind == "actions" or is_adapter(checkpoint)):
        return models.reference(checkpoint) if kind == "actions" else models.use("value", checkpoint)
    half = compute.bf16
    model: Any = Critic.load(checkpoint, half=half) if kind == "states" else load_policy(checkpoint, half=half)[0]
    return hold_frozen_in_bfloat16(model, compute, frozen=True).to(device).eval()
