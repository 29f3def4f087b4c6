"""Supervised fine-tuning on rows of token ids. The loss of a step is the mean over its completion tokens.

Rows are packed, and a prefix that several rows of a pass share, such as the instructions of every prompt, is computed
once (:mod:`training.data.packing`). Models whose layers cannot separate packed texts are trained on padded rows
(:mod:`training.engine.padded_sft`). Memory is bounded by the tokens of a pass in both.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from training.data.cache import read_rows, write_rows
from training.data.columns import Column
from training.data.packing import PackedSequence, row_tokens
from training.data.rows import Row
from training.engine.annotate import completion_token_logprobs
from training.engine.checkpoints import load_policy, save_adapter, save_policy, select_device, with_adapter
from training.engine.early_stopping import BEST, EarlyStopping, load_best
from training.engine.half_weights import (
    copy_trained_weights,
    hold_frozen_in_bfloat16,
    is_held_in_bfloat16,
    reads_half,
)
from training.engine.launcher import run_launched
from training.engine.packed_model import accept_packed
from training.engine.padded_sft import padded_trainer
from training.engine.progress import ReportSteps, Watcher, unwatched
from training.engine.rotary_lengths import length_class
from training.engine.sharding import settle_sharding, whole_model
from training.engine.stage_jobs import keep_curves
from training.engine.step_plan import Plan, StepShard
from training.engine.supervised_job import SupervisedJob
from training.engine.trainer import RowsTrainer, SaveByTheClock, StopOnNonfinite, train_on, training_arguments
from training.engine.tree_attention import UnpackableLayers

JOB = "sft.json"
ROWS = "rows.parquet"
VALIDATION_ROWS = "validation.parquet"


def supervised(
    job: SupervisedJob,
    rows: Sequence[Row],
    out: Path,
    *,
    validation: Sequence[Row] = (),
    launcher: Sequence[str] = (),
    watch: Watcher = unwatched,
) -> Path:
    """Trains on *rows* and returns the folder of the result, `OUT/model`; a killed run is resumed.

    *validation*: rows for early stopping (:mod:`training.engine.early_stopping`); the result then has the weights of
    the epoch with the lowest loss on them, and `OUT/validation.json` the scores. *launcher*: runs the job in several
    processes, see :func:`training.engine.launcher.run_launched`. Raises BadInput where the start is no
    checkpoint, or where there are validation rows for a model that takes padded rows only; ValueError for a row beyond
    `compute.max_tokens`.
    """
    if (out / "model").exists():
        return out / "model"
    too_long = sum(len(row) > job.compute.max_tokens for row in (*rows, *validation))
    if too_long:
        raise ValueError(f"{too_long} rows are longer than {job.compute.max_tokens} tokens: they would be cut")
    if not launcher:
        return _trained(job, rows, validation, out, watch)
    out.mkdir(parents=True, exist_ok=True)
    write_rows(out / ROWS, rows, {})
    write_rows(out / VALIDATION_ROWS, validation, {})
    write_atomically(out / JOB, job.model_dump_json(indent=1) + "\n", sync=False)
    run_launched(launcher, out)
    for name in (ROWS, VALIDATION_ROWS, JOB):
        (out / name).unlink()
    return out / "model"


def run_supervised(folder: Path, watch: Watcher = unwatched) -> None:
    """Runs one process's part of the job that `supervised` wrote to *folder*. Raises BadInput."""
    try:
        job = SupervisedJob.model_validate_json((folder / JOB).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(folder / JOB)!r} cannot be read: {' '.join(str(error).split())[:200]}") from error
    rows, validation = (read_rows(folder / name)[0] for name in (ROWS, VALIDATION_ROWS))
    _trained(job, rows, validation, folder, watch)


def _trained(job: SupervisedJob, rows: Sequence[Row], validation: Sequence[Row], out: Path, watch: Watcher) -> Path:
    from transformers import PrinterCallback

    select_device(job.compute)
    model, tokenizer = load_policy(job.start, padded=True, half=reads_half(job.compute))
    torch.manual_seed(job.seed)  # new adapters do not depend on what this process ran before
    try:
        accept_packed(model)
        trainer = packed_trainer(model, rows, out / "checkpoints", job)
    except UnpackableLayers as error:
        if validation:
            raise BadInput(f"validation rows are packed, but {error}; or leave them out") from error
        if reads_half(job.compute):  # padded rows are trained on float32 weights
            model, tokenizer = load_policy(job.start, padded=True)
            torch.manual_seed(job.seed)
        trainer = padded_trainer(model, tokenizer, rows, out / "checkpoints", job)
    settle_sharding(trainer)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(SaveByTheClock(job.compute.save_minutes))
    trainer.add_callback(StopOnNonfinite())
    trainer.add_callback(ReportSteps("fine-tuning", watch))
    if validation:
        how = {"every": math.ceil(len(rows) / job.optimization.batch_rows), "patience": job.patience}
        trainer.add_callback(EarlyStopping(trainer, validation, out, **how, compute=job.compute, watch=watch))
    train_on(trainer, out / "checkpoints")
    learned = whole_model(trainer, partial(_untrained, job))
    if learned is not None:
        if validation:
            load_best(learned, out)
        if is_held_in_bfloat16(learned):  # an adapter is merged into the float32 weights, or its sum would be rounded
            exact = _untrained(job)
            copy_trained_weights(learned, exact)
            learned = exact
        write_atomically(out / "log.json", json.dumps(trainer.state.log_history, indent=1) + "\n", sync=False)
        save_adapter(learned, out / "model", job.start)
        save_policy(learned, tokenizer, out / "model", job.start)
        keep_curves(out)
        shutil.rmtree(out / "checkpoints", ignore_errors=True)
        (out / BEST).unlink(missing_ok=True)
    return out / "model"


def _untrained(job: SupervisedJob) -> Any:
    return with_adapter(load_policy(job.start, padded=True)[0], job.compute.lora)


class SupervisedTrainer(RowsTrainer):
    """Trains a causal model on completions: the loss of a step is the mean over its completion tokens."""

    def share_of_step(self, indices: Sequence[int], share: StepShard) -> float:
        return self.plan.completion_tokens(indices) / share.batch_tokens

    def pack_loss(
        self, model: nn.Module, packed: PackedSequence, columns: Mapping[Column, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        places, _ = row_tokens(packed)
        return -completion_token_logprobs(model, packed)[places].mean(), {}


def packed_trainer(model: Any, rows: Sequence[Row], out: Path, job: SupervisedJob) -> SupervisedTrainer:
    """The trainer of *job* for a *model* that takes packed sequences."""
    optimization, compute = job.optimization, job.compute
    by_epoch = math.ceil(len(rows) / optimization.batch_rows)
    steps = job.steps or max(1, optimization.epochs * by_epoch)
    arguments = training_arguments(out, optimization, compute, seed=job.seed, steps=steps, report_to=job.report_to)
    plan = Plan(
        rows,
        batch_rows=optimization.batch_rows,
        pack_tokens=compute.pack_tokens,
        epochs=math.ceil(steps / max(1, by_epoch)),
        steps=steps,
        seed=job.seed,
        world_size=arguments.world_size,
        class_of=length_class(model),
    )
    adapted = hold_frozen_in_bfloat16(with_adapter(model, compute.lora), compute)
    return SupervisedTrainer(adapted, plan, {}, arguments)
