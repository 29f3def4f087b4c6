"""Supervised fine-tuning: TRL's SFTTrainer on rows of token ids.

TRL's defaults do not apply: no chat template is rendered, labels are the completion tokens only, and `max_length`
(1,024 by default, with silent truncation) is the limit of the rows. `tests/training/engine/test_sft.py` checks that the
loss that TRL reports is the mean over completion tokens and that no row is lost or cut.

Memory is bounded by the tokens of a pass, padding included, and not by its rows: eight rows of 16,384 tokens take 32
times the memory of eight of 512.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch

from envs.core.atomic_write import write_atomically
from envs.core.errors import BadInput
from envs.core.record import Record
from models.local.loading import reading_old_names
from training.data.cache import read_rows, write_rows
from training.data.rows import Row
from training.engine.checkpoints import load_policy, lora_config, save_policy, select_device, with_adapter
from training.engine.launcher import run_launched
from training.engine.progress import ReportSteps, Watcher, unwatched
from training.engine.settings import Compute, Optimization
from training.engine.trainer import (
    SaveByTheClock,
    one_device,
    settle_sharding,
    shared_arguments,
    train_on,
    whole_model,
)

IGNORED = -100
"""Label of a token without loss."""
JOB = "sft.json"
ROWS = "rows.parquet"


class SupervisedJob(Record):
    """A fine-tuning job, without its rows."""

    start: Path
    optimization: Optimization
    compute: Compute = Compute()
    seed: int = 0
    steps: int | None = None
    """Optimizer steps; None: as many as the epochs take."""


def supervised(
    job: SupervisedJob, rows: Sequence[Row], out: Path, *, launcher: Sequence[str] = (), watch: Watcher = unwatched
) -> Path:
    """Trains on *rows* and returns the folder of the result, `OUT/model`; a killed run is resumed.

    *launcher*: runs the job in several processes, see :func:`training.engine.launcher.run_launched`. Raises BadInput
    where the start is no checkpoint, ValueError for a row beyond `compute.max_tokens`.
    """
    if (out / "model").exists():
        return out / "model"
    too_long = sum(len(row) > job.compute.max_tokens for row in rows)
    if too_long:
        raise ValueError(f"{too_long} rows are longer than {job.compute.max_tokens} tokens: they would be cut")
    if not launcher:
        return _trained(job, rows, out, watch)
    out.mkdir(parents=True, exist_ok=True)
    write_rows(out / ROWS, rows, {})
    write_atomically(out / JOB, job.model_dump_json(indent=1) + "\n", sync=False)
    run_launched(launcher, out)
    for name in (ROWS, JOB):
        (out / name).unlink()
    return out / "model"


def run_supervised(folder: Path, watch: Watcher = unwatched) -> None:
    """Runs one process's part of the job that `supervised` wrote to *folder*. Raises BadInput."""
    try:
        job = SupervisedJob.model_validate_json((folder / JOB).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{str(folder / JOB)!r} cannot be read: {' '.join(str(error).split())[:200]}") from error
    _trained(job, read_rows(folder / ROWS)[0], folder, watch)


def _trained(job: SupervisedJob, rows: Sequence[Row], out: Path, watch: Watcher) -> Path:
    from transformers import PrinterCallback

    compute, lora = job.compute, job.compute.lora
    select_device(compute)
    model, tokenizer = load_policy(job.start, padded=True)
    with reading_old_names():
        trainer = bounded_trainer()(
            most_tokens=compute.pack_tokens,
            model=model,
            args=_config(out / "checkpoints", rows, job),
            train_dataset=_dataset(rows),
            processing_class=tokenizer,
            peft_config=lora_config(lora, model) if lora is not None else None,
        )
    settle_sharding(trainer)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(SaveByTheClock(compute.save_minutes))
    trainer.add_callback(ReportSteps("fine-tuning", watch))
    train_on(trainer, out / "checkpoints")
    learned = whole_model(trainer, lambda: with_adapter(load_policy(job.start, padded=True)[0], lora))
    if learned is not None:
        write_atomically(out / "log.json", json.dumps(trainer.state.log_history, indent=1) + "\n", sync=False)
        save_policy(learned, tokenizer, out / "model", job.start)
        shutil.rmtree(out / "checkpoints", ignore_errors=True)
    return out / "model"


def completion_logits_trainer() -> Any:
    """A subclass of TRL's trainer that computes logits only where the loss needs them."""
    from trl.trainer.sft_trainer import SFTTrainer

    class CompletionLogitsTrainer(SFTTrainer):
        """TRL does this on a GPU with Triton. Elsewhere it computes logits at every position, forward and backward: a
        third of the time on a CPU with a vocabulary of 49,152."""

        def compute_loss(
            self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            labels = inputs["labels"][:, 1:]
            if labels.device.type != "cpu" or return_outputs or self.accelerator.num_processes > 1:
                return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
            places = (labels != IGNORED).any(0).nonzero().squeeze(1)
            rest = {name: value for name, value in inputs.items() if name != "labels"}
            logits = model(**rest, use_cache=False, logits_to_keep=places).logits
            targets = labels[:, places]
            counted = targets != IGNORED
            total = torch.nn.functional.cross_entropy(logits[counted].float(), targets[counted], reduction="sum")
            return total / (counted.sum() if num_items_in_batch is None else num_items_in_batch)

    return CompletionLogitsTrainer


def bounded_trainer() -> Any:
    """The class of :func:`completion_logits_trainer`, with a token limit for each forward pass."""

    class BoundedTrainer(completion_logits_trainer()):
        """A pass has at most *most_tokens* tokens, padding included; a longer row is processed alone."""

        def __init__(self, *, most_tokens: int, **options: Any) -> None:
            self._most_tokens = most_tokens
            super().__init__(**options)

        def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Any:
            """Splits the batch into parts. A part's loss is weighted by its share of *num_items_in_batch*, the batch's
            completion tokens; if that is None, the batch is not split."""
            if num_items_in_batch is None:
                return super().training_step(model, inputs, num_items_in_batch)
            lengths = inputs["attention_mask"].sum(1).tolist()
            parts = bounded_parts(lengths, self._most_tokens)
            count = torch.tensor([len(parts)], device=self.accelerator.device)
            parts = bounded_parts(lengths, self._most_tokens, int(self.accelerator.gather(count).max()))
            return sum(
                super(BoundedTrainer, self).training_step(model, _part(inputs, rows, lengths), num_items_in_batch)
                for rows in parts
            )

    return BoundedTrainer


def bounded_parts(lengths: Sequence[int], most_tokens: int, at_least: int = 1) -> list[list[int]]:
    """Splits the indices of *lengths* into parts of similar length. A part's longest length times its number of rows is
    at most *most_tokens*; a longer row is a part of its own.

    Returns at least *at_least* parts if there are as many rows: processes that share weights must make equally many
    passes.
    """
    parts: list[list[int]] = []
    for place in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if parts and lengths[parts[-1][0]] * (len(parts[-1]) + 1) <= most_tokens:
            parts[-1].append(place)
        else:
            parts.append([place])
    while len(parts) < min(at_least, len(lengths)):
        largest = max(parts, key=len)
        parts.append([largest.pop()])
    return parts


def _part(inputs: dict[str, Any], rows: list[int], lengths: Sequence[int]) -> dict[str, Any]:
    """Selects *rows* of a right-padded batch and cuts the padding that none of them needs."""
    longest = max(lengths[row] for row in rows)
    return {name: values[rows, :longest] for name, values in inputs.items()}


def _dataset(rows: Sequence[Row]) -> Any:
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    ids = [[*row.prompt, *row.completion] for row in rows]
    labels = [[*(IGNORED,) * len(row.prompt), *row.completion] for row in rows]
    return Dataset.from_dict({"input_ids": ids, "labels": labels})


def _config(out: Path, rows: Sequence[Row], job: SupervisedJob) -> Any:
    """TRL's configuration. Raises BadInput where a step's rows cannot be split evenly over the processes."""
    from accelerate import PartialState
    from trl.trainer.sft_config import SFTConfig

    how, compute = job.optimization, job.compute
    processes = PartialState(cpu=compute.cpu).num_processes
    own, left = divmod(how.batch_rows, processes)
    if left:
        raise BadInput(f"optimization.batch_rows {how.batch_rows} is no multiple of the {processes} processes")
    fitting = compute.pack_tokens * len(rows) // max(1, sum(map(len, rows)))  # rows of the mean length
    micro = max(size for size in range(1, own + 1) if own % size == 0 and size <= max(1, fitting))
    steps = job.steps or max(1, how.epochs * math.ceil(len(rows) / how.batch_rows))
    arguments = SFTConfig(
        output_dir=str(out),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=own // micro,
        num_train_epochs=how.epochs,
        max_steps=job.steps or -1,
        max_length=compute.max_tokens,
        packing=False,
        gradient_checkpointing=cast(Any, None),  # the deprecated name of the option; TRL's default is on
        train_sampling_strategy="group_by_length",
        logging_steps=max(1, steps // 20),
        **shared_arguments(how, compute, seed=job.seed, steps=steps),
    )
    one_device(arguments)
    return arguments
