"""Supervised fine-tuning of models that cannot take packed sequences: TRL's SFTTrainer on padded rows of token ids.

TRL's defaults do not apply: no chat template is rendered, labels are the completion tokens only, and `max_length`
(1,024 by default, with silent truncation) is the limit of the rows. `tests/training/engine/test_padded_sft.py` checks
that the loss that TRL reports is the mean over completion tokens and that no row is lost or cut.

Memory is bounded by the tokens of a pass, padding included, and not by its rows: eight rows of 16,384 tokens take 32
times the memory of eight of 512.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch

from envs.core.errors import BadInput
from models.local.loading import reading_old_names
from training.data.rows import Row
from training.engine.checkpoints import lora_config
from training.engine.processes import process_state
from training.engine.trainer import one_device, shared_arguments

if TYPE_CHECKING:
    from training.engine.supervised_job import SupervisedJob

IGNORED = -100
"""Label of a token without loss."""


def padded_trainer(model: Any, tokenizer: Any, rows: Sequence[Row], out: Path, job: SupervisedJob) -> Any:
    """TRL's trainer for *job*. Raises BadInput where a step's rows cannot be split evenly over the processes."""
    lora = job.compute.lora
    with reading_old_names():
        return bounded_trainer()(
            most_tokens=job.compute.pack_tokens,
            model=model,
            args=_config(out, rows, job),
            train_dataset=_dataset(rows),
            processing_class=tokenizer,
            peft_config=lora_config(lora, model) if lora is not None else None,
        )


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
    from trl.trainer.sft_config import SFTConfig

    optimization, compute = job.optimization, job.compute
    processes = process_state(cpu=compute.cpu).num_processes
    own, left = divmod(optimization.batch_rows, processes)
    if left:
        raise BadInput(
            f"optimization.batch_rows {optimization.batch_rows} is not a multiple of the {processes} processes"
        )
    fitting = compute.pack_tokens * len(rows) // max(1, sum(map(len, rows)))  # rows of the mean length
    micro = max(size for size in range(1, own + 1) if own % size == 0 and size <= max(1, fitting))
    steps = job.steps or max(1, optimization.epochs * math.ceil(len(rows) / optimization.batch_rows))
    arguments = SFTConfig(
        output_dir=str(out),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=own // micro,
        num_train_epochs=optimization.epochs,
        max_steps=job.steps or -1,
        max_length=compute.max_tokens,
        packing=False,
        gradient_checkpointing=cast(Any, None),  # the deprecated name of the option; TRL's default is on
        train_sampling_strategy="group_by_length",
        logging_steps=max(1, steps // 20),
        **shared_arguments(optimization, compute, seed=job.seed, steps=steps, report_to=job.report_to),
    )
    one_device(arguments)
    return arguments
