"""The supervised start: TRL's SFTTrainer on rows that are tokens already.

Nothing is left to TRL's guesses: no chat template is rendered again, labels hold the action's tokens alone, and its
`max_length` (1,024 by default, cut without a word) is what the rows were bounded by. The contract is
`tests/training/stages/test_sft.py`: the loss that TRL reports is the mean over action tokens, no row is lost or cut.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from training.data.rows import Row
from training.stages.checkpoints import load_policy, lora_config, save_policy, use_machine
from training.stages.settings import Compute, Optimization
from training.stages.trainer import SaveByTheClock, one_device, warmup_steps, whole_checkpoint
from training.stages.watching import TellSteps, Watcher, unwatched

IGNORED = -100
"""A label that counts for nothing."""
MICRO_BATCH = 8
"""Most rows of one forward pass, padded to the longest."""


def supervised(
    start: Path,
    rows: Sequence[Row],
    how: Optimization,
    compute: Compute,
    out: Path,
    *,
    seed: int = 0,
    watch: Watcher = unwatched,
) -> Path:
    """Trains the checkpoint *start* on *rows* and returns the folder of the result, `OUT/model`; a killed one goes on.

    Raises BadInput where *start* is no checkpoint, ValueError for a row beyond `compute.max_tokens`.
    """
    if (out / "model").exists():
        return out / "model"
    from transformers import PrinterCallback

    too_long = sum(len(row) > compute.max_tokens for row in rows)
    if too_long:
        raise ValueError(f"{too_long} rows are longer than {compute.max_tokens} tokens: they would be cut")
    use_machine(compute)
    model, tokenizer = load_policy(start, padded=True)
    trainer = at_actions()(
        model=model,
        args=_config(out / "checkpoints", len(rows), how, compute, seed),
        train_dataset=_dataset(rows),
        processing_class=tokenizer,
        peft_config=lora_config(compute.lora) if compute.lora is not None else None,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(SaveByTheClock(compute.save_minutes))
    trainer.add_callback(TellSteps("fine-tuning", watch))
    trainer.train(resume_from_checkpoint=whole_checkpoint(out / "checkpoints"))
    (out / "log.json").write_text(json.dumps(trainer.state.log_history, indent=1) + "\n", encoding="utf-8")
    save_policy(trainer.accelerator.unwrap_model(trainer.model), tokenizer, out / "model")
    shutil.rmtree(out / "checkpoints", ignore_errors=True)
    return out / "model"


def at_actions() -> Any:
    """TRL's trainer, which makes no logits that the loss does not ask for."""
    import torch
    from trl.trainer.sft_trainer import SFTTrainer

    class AtActions(SFTTrainer):
        """TRL does so where it has Triton, on a GPU; elsewhere it makes logits at every position, forward and back: a
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
            lost = torch.nn.functional.cross_entropy(logits[counted].float(), targets[counted], reduction="sum")
            return lost / (counted.sum() if num_items_in_batch is None else num_items_in_batch)

    return AtActions


def _dataset(rows: Sequence[Row]) -> Any:
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    ids = [[*row.prompt, *row.action] for row in rows]
    labels = [[*(IGNORED,) * len(row.prompt), *row.action] for row in rows]
    return Dataset.from_dict({"input_ids": ids, "labels": labels})


def _config(out: Path, rows: int, how: Optimization, compute: Compute, seed: int) -> Any:
    import torch
    from trl.trainer.sft_config import SFTConfig

    micro = max(size for size in range(1, MICRO_BATCH + 1) if how.batch_rows % size == 0)
    steps = max(1, how.epochs * math.ceil(rows / how.batch_rows))
    arguments = SFTConfig(
        output_dir=str(out),
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=how.batch_rows // micro,
        num_train_epochs=how.epochs,
        learning_rate=how.learning_rate,
        lr_scheduler_type="constant_with_warmup" if how.schedule == "constant" else how.schedule,
        warmup_steps=warmup_steps(how, steps),
        max_grad_norm=how.clip,
        weight_decay=how.weight_decay,
        max_length=compute.max_tokens,
        packing=False,
        bf16=compute.bf16,
        fp16=False,
        gradient_checkpointing=cast(Any, None),  # the old name of the next one, which TRL switches on
        activation_checkpointing=compute.gradient_checkpointing,
        use_cpu=compute.cpu or not torch.cuda.is_available(),
        seed=seed,
        data_seed=seed,
        train_sampling_strategy="group_by_length",
        dataloader_pin_memory=False,
        logging_strategy="steps",
        logging_steps=max(1, steps // 20),
        logging_nan_inf_filter=False,
        save_strategy="no",
        save_total_limit=1,
        report_to=[],
        disable_tqdm=True,
        push_to_hub=False,
    )
    one_device(arguments)
    return arguments
