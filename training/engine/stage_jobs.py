"""Stores a stage as a folder of data and settings, so that any launcher can run it.

    STAGE/
    ├── job.json        a StageJob
    ├── rows.parquet    rows and the columns that the stage is trained on
    ├── checkpoints/    while it runs; removed at the end
    ├── log.json        the logged numbers, step by step
    ├── tensorboard/    the same, if `report_to` names it
    └── model/          the result, present when the stage is done: a checkpoint; an adapter with `compute.shared_base`

`python -m training.engine STAGE` runs a stage; `accelerate launch -m training.engine STAGE` or `torchrun -m …` runs it
in several processes: each with the full model (DDP), or with a part of it (`--use_fsdp --fsdp_version 2`), or with a
part of the optimizer's states and gradients (DeepSpeed: `--use_deepspeed --zero_stage 2`).
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from torch import nn

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.record import Record
from training.data.cache import read_rows, write_rows
from training.data.columns import Column, Columns
from training.data.rows import Row
from training.engine.actor import ActorTrainer
from training.engine.checkpoints import (
    load_policy,
    load_tokenizer,
    save_policy,
    select_device,
    with_adapter,
    write_folder_atomically,
)
from training.engine.clipped_actor import ClippedActorTrainer
from training.engine.critic_model import Critic, states_of
from training.engine.critics import CriticTrainer
from training.engine.half_weights import (
    copy_trained_weights,
    hold_frozen_in_bfloat16,
    is_held_in_bfloat16,
    reads_half,
)
from training.engine.launcher import run_launched
from training.engine.progress import Watcher, unwatched
from training.engine.rotary_lengths import length_class
from training.engine.settings import Compute, Objective, Optimization
from training.engine.sharding import settle_sharding, whole_model
from training.engine.shared_base_lora import SharedBaseModels
from training.engine.step_plan import Plan
from training.engine.trainer import RowsTrainer, train, training_arguments


class StageJob(Record):
    """All settings of one stage."""

    kind: Literal["potential", "value", "actor"]
    start: Path
    """For an actor, the policy's checkpoint; for a critic, a critic's, or the policy whose trunk a new critic takes."""
    optimization: Optimization
    objective: Objective = Objective()
    """The actor's objective."""
    head_rate: float | None = Field(default=None, gt=0)
    """Learning rate of a critic's head; None: the trunk's."""
    compute: Compute = Compute()
    seed: int = 0
    report_to: tuple[str, ...] = ()


def write_job(folder: Path, job: StageJob, rows: Sequence[Row], columns: Columns) -> None:
    """Writes the files for `run_job`. Columns: `TARGET` for a critic; `ADVANTAGE`, `REFERENCE` and `SUCCESS` for an
    actor; `ADVANTAGE` and `WEIGHT` for one with the objective `clipped`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "rows.parquet", rows, columns)
    write_atomically(folder / "job.json", job.model_dump_json(indent=1) + "\n", sync=False)


def launch(
    folder: Path, launcher: Sequence[str] = (), models: SharedBaseModels | None = None, watch: Watcher = unwatched
) -> Path:
    """Runs the stage in *folder* unless it is done, and returns its model's folder.

    *launcher*: e.g. `("accelerate", "launch", "--num_processes", "8", "-m")`; empty runs it in this process. There,
    *models* are shared by all stages and *watch* gets the progress; a launched stage reports progress on stderr. Raises
    TrainingDiverged, and BadInput where a launched process fails; its stderr has the reason.
    """
    if not (folder / "model").exists():
        if launcher:
            run_launched(launcher, folder)
        else:
            run_job(folder, models, watch)
    return folder / "model"


def read_job(folder: Path) -> StageJob:
    """Reads the settings of the stage in *folder*. Raises BadInput."""
    try:
        return StageJob.model_validate_json((folder / "job.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(folder)!r} is not a stage: {' '.join(str(error).split())[:200]}") from error


def run_job(folder: Path, models: SharedBaseModels | None = None, watch: Watcher = unwatched) -> None:
    """Trains to the end, from the last checkpoint if there is one. *models*: the shared models of a stage with
    `compute.shared_base`; None loads them. Raises BadInput, TrainingDiverged."""
    job = read_job(folder)
    rows, columns = read_rows(folder / "rows.parquet")
    device = select_device(job.compute)
    if job.compute.shared_base and models is None:
        models = SharedBaseModels(job.start, job.compute.needed_lora, device, job.compute)
    torch.manual_seed(job.seed)  # new adapters and heads do not depend on what this process ran before
    if models is not None:
        trainer = _trainer(folder, job, models.use(job.kind, job.start), rows, columns)
    else:
        model = hold_frozen_in_bfloat16(_built(job, half=reads_half(job.compute)), job.compute)
        trainer = _trainer(folder, job, model, rows, columns)
    settle_sharding(trainer)
    if job.compute.shared_base and (trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled):
        raise BadInput(
            "compute.shared_base keeps one frozen base in each process: use either that or FSDP or DeepSpeed"
        )
    log = train(trainer, job.compute, folder.name, watch)
    if models is not None:  # they stay in use: drop the trainer's wrapper of their forward pass
        trainer.accelerator.unwrap_model(trainer.model, keep_fp32_wrapper=False)
    learned = None if models is not None else whole_model(trainer, lambda: _built(job))
    if trainer.is_world_process_zero():
        write_atomically(folder / "log.json", json.dumps(log, indent=1) + "\n", sync=False)
        if models is not None:
            models.save(job.kind, folder / "model")
        else:
            _save(learned, job, folder / "model")
        keep_curves(folder)
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def _built(job: StageJob, *, half: bool = False) -> nn.Module:
    """The initial model of the stage; *half*: the weights under adapters are read in bfloat16."""
    if job.kind == "actor":
        return with_adapter(load_policy(job.start, half=half)[0], job.compute.lora)
    critic = (Critic.load if Critic.is_at(job.start) else Critic.from_policy)(job.start, half=half)
    if job.compute.lora is not None:
        critic.adapt(job.compute.lora)
    return critic


def _save(learned: Any, job: StageJob, out: Path) -> None:
    if is_held_in_bfloat16(learned):  # an adapter is merged into the float32 weights, or its sum would be rounded
        exact = _built(job)
        copy_trained_weights(learned, exact)
        learned = exact
    if job.kind == "actor":
        save_policy(learned, load_tokenizer(job.start), out, job.start)
        return
    with write_folder_atomically(out) as part:
        learned.save(part)


def keep_curves(folder: Path) -> None:
    """Moves the TensorBoard events of a training out of its checkpoint folder, where transformers writes them."""
    events = folder / "checkpoints" / "runs"
    if events.is_dir():
        shutil.rmtree(folder / "tensorboard", ignore_errors=True)
        events.rename(folder / "tensorboard")


def _plan(job: StageJob, model: nn.Module, rows: Sequence[Row], folder: Path) -> tuple[Plan, Any]:
    optimization = job.optimization
    steps = optimization.epochs * math.ceil(len(rows) / optimization.batch_rows)
    arguments = training_arguments(
        folder / "checkpoints", optimization, job.compute, seed=job.seed, steps=steps, report_to=job.report_to
    )
    plan = Plan(
        rows,
        batch_rows=optimization.batch_rows,
        pack_tokens=job.compute.pack_tokens,
        epochs=optimization.epochs,
        seed=job.seed,
        world_size=arguments.world_size,
        class_of=length_class(model),
    )
    return plan, arguments


def _trainer(folder: Path, job: StageJob, model: nn.Module, rows: Sequence[Row], columns: Columns) -> RowsTrainer:
    plan, arguments = _plan(job, model, rows if job.kind == "actor" else states_of(rows), folder)
    if job.kind != "actor":
        return CriticTrainer(
            job.kind, model, plan, torch.tensor(columns[Column.TARGET]), arguments, head_rate=job.head_rate
        )
    if job.objective.kind == "clipped":
        return ClippedActorTrainer(
            job.objective,
            model,
            plan,
            rows=rows,
            advantages=torch.tensor(columns[Column.ADVANTAGE]),
            weights=torch.tensor(columns[Column.WEIGHT]),
            arguments=arguments,
        )
    successes, weights = columns.get(Column.SUCCESS), columns.get(Column.WEIGHT)
    return ActorTrainer(
        job.objective,
        model,
        plan,
        advantages=torch.tensor(columns[Column.ADVANTAGE]),
        references=torch.tensor(columns[Column.REFERENCE]),
        successes=torch.tensor(successes, dtype=torch.float32) if successes is not None else None,
        weights=torch.tensor(weights) if weights is not None else None,
        arguments=arguments,
    )
