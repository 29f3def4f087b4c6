"""A `transformers.Trainer` for packed rows with an exact loss: one item is one optimizer step's packed sequences.

The mean loss of a step does not depend on how its rows are packed or split over processes, because every packed
sequence is weighted by its share of the step's rows. The library's gradient accumulation, which scales losses, is not
used.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, cast

import torch
from torch import Tensor, distributed, nn
from transformers import (
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, get_last_checkpoint

from envs.core.disk_errors import writing
from envs.core.errors import BadInput, listed
from training.data.columns import Column
from training.data.packing import PackedSequence
from training.engine.packed_model import precision, require_packed_support
from training.engine.processes import PATIENCE
from training.engine.progress import ReportSteps, Watcher, unwatched
from training.engine.settings import Compute, Optimization
from training.engine.sharding import accumulate_gradients
from training.engine.step_plan import Plan, StepShard


class TrainingDiverged(RuntimeError):
    """A loss or a target is not finite; the message names the rows."""


class RowsTrainer(Trainer, ABC):
    """Base of the trainers on rows. Subclasses define :meth:`pack_loss`; *columns* are its per-row numbers, (N,)."""

    # Only read with gradient accumulation, which stays 1: losses are weighted below.
    loss_is_scaled_for_ga = True

    def __init__(
        self, model: nn.Module, plan: Plan, columns: Mapping[Column, Tensor], arguments: TrainingArguments
    ) -> None:
        require_packed_support(model)
        super().__init__(model=model, args=arguments, train_dataset=plan, data_collator=_only)
        self.remove_callback(PrinterCallback)
        self.plan = plan
        self.columns = columns
        self.seen: dict[str, Tensor] = defaultdict(lambda: torch.zeros(2, dtype=torch.float64))
        """By name, (sum over rows, number of rows) of this process's reported numbers since the last log."""

    @abstractmethod
    def pack_loss(
        self, model: nn.Module, packed: PackedSequence, columns: Mapping[Column, Tensor]
    ) -> tuple[Tensor, dict[str, float]]:
        """(mean loss over the rows of *packed*, numbers to log). *columns* hold the values of those rows."""

    def share_of_step(self, indices: Sequence[int], share: StepShard) -> float:
        """The weight of the packed sequence of *indices* in its step: its share of the rows."""
        return len(indices) / share.batch_rows

    def training_step(self, model: nn.Module, inputs: Any, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """Forward and backward pass of every packed sequence of one step; returns the step's loss."""
        share: StepShard = inputs["share"]
        model.train()
        total = torch.zeros((), device=self.args.device)
        packs = share.packs or ((),)
        for number, indices in enumerate(packs, 1):
            accumulate_gradients(self.accelerator, last=number == len(packs))
            loss = self._weighted(model, indices or self.plan[0].packs[0], self.share_of_step(indices, share))
            self.accelerator.backward(loss * self.args.world_size)
            total += loss.detach()
        return total * self.args.world_size  # the library logs the mean over processes

    def _clip_grad_norm(self, model: nn.Module) -> Any:
        """The norm before clipping, as transformers'. Raises TrainingDiverged before a step with a gradient that is
        not finite, which would spoil all weights."""
        norm: Any = super()._clip_grad_norm(model)  # pyright: ignore[reportPrivateUsage]
        if norm is not None and not math.isfinite(float(norm)):  # DeepSpeed clips by itself and gives no norm
            raise TrainingDiverged(
                f"step {self.state.global_step + 1}: the norm of the gradient is {float(norm)}, although the loss is"
                " finite; lower the learning rate"
            )
        return norm

    def _weighted(self, model: nn.Module, indices: tuple[int, ...], weight: float) -> Tensor:
        packed = self.plan.packed(indices).to(self.args.device)
        chosen = {name: column[list(indices)].to(self.args.device) for name, column in self.columns.items()}
        with self.compute_loss_context_manager(), precision(self.args.device, bf16=self.args.bf16):
            loss, numbers = self.pack_loss(model, packed, chosen)
        if not math.isfinite(loss.item()):
            raise TrainingDiverged(
                f"step {self.state.global_step + 1}: the loss is {loss.item()} on the rows {listed(indices, most=8)};"
                " lower the learning rate"
            )
        if weight:
            for name, value in numbers.items():
                self.seen[name] += torch.tensor([value * len(indices), len(indices)], dtype=torch.float64)
        return loss * weight

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Adds the means, over the rows of all processes, of the numbers of :meth:`pack_loss` since the last log."""
        seen = {name: values.tolist() for name, values in self.seen.items()}
        self.seen.clear()
        means = {name: total / rows for name, (total, rows) in _summed(seen).items()}
        super().log({**logs, **means}, start_time)

    def floating_point_ops(self, inputs: Any) -> int:
        """Returns 0: the library's formula is for one padded batch."""
        return 0


def _summed(seen: dict[str, list[float]]) -> dict[str, tuple[float, float]]:
    """(sum, number of rows) by name over all processes; some may have no rows."""
    parts = [seen]
    if distributed.is_available() and distributed.is_initialized():
        parts = cast("list[dict[str, list[float]]]", [None] * distributed.get_world_size())
        distributed.all_gather_object(parts, seen)
    names = sorted({name for part in parts for name in part})
    by_name = {name: [part[name] for part in parts if name in part] for name in names}
    return {name: (sum(total for total, _ in rows), sum(count for _, count in rows)) for name, rows in by_name.items()}


class StopOnNonfinite(TrainerCallback):
    """Raises TrainingDiverged if a logged loss or gradient norm is not finite."""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: object,
    ) -> None:
        logs = logs or {}
        bad = [name for name in ("loss", "grad_norm", "train_loss") if not math.isfinite(logs.get(name, 0.0))]
        if bad:
            raise TrainingDiverged(f"step {state.global_step}: the {bad[0]} is {logs[bad[0]]}: lower the learning rate")


class SaveByTheClock(TrainerCallback):
    """Saves a checkpoint every *minutes*, by the clock of the first process.

    *steps*: save only at multiples of this number of steps, where training cannot be resumed in between.
    """

    def __init__(self, minutes: float, steps: int = 1) -> None:
        self._every_s = minutes * 60
        self._steps = steps
        self._saved_at = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        due = [time.monotonic() - self._saved_at >= self._every_s]
        if distributed.is_available() and distributed.is_initialized():
            distributed.broadcast_object_list(due, src=0)
        if due[0] and state.global_step % self._steps == 0:
            self._saved_at = time.monotonic()
            control.should_save = True


def train(
    trainer: RowsTrainer, compute: Compute, stage: str = "", watch: Watcher = unwatched
) -> list[dict[str, float]]:
    """Trains to the end of the plan, from the last checkpoint if there is one; returns the logged numbers.

    Steps are reported to *watch* under the name *stage*. An empty plan trains nothing.
    """
    if not len(trainer.plan):
        return []
    out = trainer.args.output_dir
    assert out is not None
    trainer.add_callback(SaveByTheClock(compute.save_minutes))
    trainer.add_callback(ReportSteps(stage, watch))
    train_on(trainer, Path(out))
    return [dict(row) for row in trainer.state.log_history]


def train_on(trainer: Trainer, checkpoints: Path) -> None:
    """Trains from the last complete checkpoint in *checkpoints*, or from the start. Raises BadInput for a checkpoint
    that holds more than tensors and plain values, without executing it; NotWritten where the disk is full."""
    checkpoint = complete_checkpoint(checkpoints)
    try:
        with writing(checkpoints):
            trainer.train(resume_from_checkpoint=checkpoint)
    except UnpicklingError as error:
        raise BadInput(
            f"{checkpoint!r} holds more than tensors and plain values, which is not loaded: remove it and start again"
        ) from error


def complete_checkpoint(folder: Path) -> str | None:
    """The last complete checkpoint in *folder*; incomplete ones are removed.

    transformers writes a checkpoint in place, with the trainer state among the last files, and would resume from an
    incomplete one.
    """
    for path in folder.glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
        try:
            json.loads((path / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            shutil.rmtree(path, ignore_errors=True)
    last = get_last_checkpoint(str(folder)) if folder.is_dir() else None
    if last is not None:
        _check_resumed(Path(last))
    return last


def _check_resumed(checkpoint: Path) -> None:
    """Raises BadInput where *checkpoint* holds weights that transformers would unpickle. Optimizer, schedule and random
    state are read by `torch.load(weights_only=True)`, which executes nothing. Files sharded by FSDP are not checked:
    `torch.distributed.checkpoint` unpickles them."""
    for path in sorted(checkpoint.rglob("*.bin")):
        if path.name.startswith(("pytorch_model", "adapter_model")) and not path.name.startswith("pytorch_model_fsdp"):
            raise BadInput(
                f"{str(path)!r} is a pickle, and training resumes from *.safetensors only: remove the checkpoint "
                f"{str(checkpoint)!r} and start again"
            )


def training_arguments(
    out: Path, optimization: Optimization, compute: Compute, *, seed: int, steps: int, report_to: Sequence[str] = ()
) -> TrainingArguments:
    """The library's arguments, with every relevant default set; *steps* is the length of the plan."""
    arguments = TrainingArguments(
        output_dir=str(out),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=1,
        num_train_epochs=1,
        optim="adamw_torch",
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        dataloader_num_workers=0,
        logging_steps=max(1, steps // 20),
        **shared_arguments(optimization, compute, seed=seed, steps=steps, report_to=report_to),
    )
    one_device(arguments)
    return arguments


def shared_arguments(
    optimization: Optimization, compute: Compute, *, seed: int, steps: int, report_to: Sequence[str] = ()
) -> dict[str, Any]:
    """Arguments of every trainer of transformers and TRL for optimizer and device. Trainers save by the clock, see
    :class:`SaveByTheClock`, and print nothing."""
    return {
        "learning_rate": optimization.learning_rate,
        "lr_scheduler_type": "constant_with_warmup" if optimization.schedule == "constant" else optimization.schedule,
        "warmup_steps": warmup_steps(optimization, steps),
        "max_grad_norm": optimization.clip,
        "weight_decay": optimization.weight_decay,
        "bf16": compute.bf16,
        "fp16": False,
        "activation_checkpointing": compute.gradient_checkpointing,
        "use_cpu": compute.cpu or not torch.cuda.is_available(),
        "ddp_timeout": int(PATIENCE.total_seconds()),
        "seed": seed,
        "data_seed": seed,
        "dataloader_pin_memory": False,
        "logging_strategy": "steps",
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "save_total_limit": 1,
        "report_to": list(report_to),
        "disable_tqdm": True,
        "push_to_hub": False,
    }


def warmup_steps(optimization: Optimization, steps: int) -> int:
    """Number of the *steps* in which the rate rises from 0. Rounded down: the first of them has rate 0, which would be
    a large part of a stage of few steps."""
    return math.floor(optimization.warmup * steps)


def rate_share(optimization: Optimization, step: int, steps: int) -> float:
    """The learning rate at *step* (0-based) of *steps*, as a share of `learning_rate`, 0 to 1, by the library's
    schedules."""
    rising = warmup_steps(optimization, steps)
    if step < rising:
        return step / rising
    done = (step - rising) / max(1, steps - rising)
    match optimization.schedule:
        case "constant":
            return 1.0
        case "linear":
            return 1.0 - done
        case "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * done))


def one_device(arguments: TrainingArguments) -> None:
    """Limits a process to one device; several need a launcher. transformers would otherwise wrap the model in
    `nn.DataParallel` and multiply the batch size."""
    if arguments.n_gpu > 1:  # reading the property initializes it
        arguments._n_gpu = 1  # pyright: ignore[reportPrivateUsage]


def _only(items: list[Any]) -> dict[str, Any]:
    if len(items) != 1:
        raise ValueError(f"one item is one step, but the batch has {len(items)}")
    return {"share": items[0]}
