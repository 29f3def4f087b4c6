"""Resident memory of a fine-tuning on a CPU, update by update, beside what `mira train plan` says of it.

The model has the shape of Qwen2.5 0.5B and random weights; LoRA of rank 16 in bfloat16; rows have 315 to 940 tokens,
eight an update. *resident* is the memory of the process after an update, *most* its high-water mark, *tensors* that of
live tensors. *held* is what is allocated on the C heap (smaller tensors, kernels of oneDNN), *gaps* what is free
between it.

    python -m benchmarks.resident_memory [--layers 24] [--updates 10] [--json]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import tempfile
from pathlib import Path
from typing import Any, Final

import torch
from transformers import TrainerCallback
from transformers.utils import logging

from benchmarks.gpu_peaks import small_qwen, text_start
from benchmarks.watched_training import before_training
from tests.heap import heap_bytes
from training.data.rows import Row
from training.engine import sft
from training.engine.memory_plan import GB, Sharing
from training.engine.settings import Compute, Lora, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.engine.stage_memory import fine_tuning_peak, with_layers

BATCH: Final = 8
COMPUTE: Final = Compute(bf16=True, lora=Lora(rank=16))


class Measured(TrainerCallback):
    """Gigabytes after each update."""

    def __init__(self) -> None:
        self.updates: list[dict[str, float]] = []

    def on_step_end(self, *_: Any, **__: Any) -> None:
        held, gaps = heap_bytes()
        live = {
            tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
            for tensor in gc.get_objects()
            if isinstance(tensor, torch.Tensor)
        }
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        used = {
            "resident": int(status.partition("VmRSS:")[2].split()[0]) * 1024,
            "most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "tensors": sum(live.values()),
            "held": held,
            "gaps": gaps,
        }
        self.updates.append({name: round(value / GB, 2) for name, value in used.items()})


def measure(layers: int, updates: int) -> dict[str, Any]:
    config = with_layers(small_qwen(), layers)
    draw = random.Random(0)
    rows = [
        Row(
            tuple(draw.choices(range(1_000, 50_000), k=draw.randint(300, 900))),
            tuple(draw.choices(range(1_000, 50_000), k=draw.randint(15, 40))),
            number,
            0,
        )
        for number in range(updates * BATCH)
    ]
    measured = Measured()
    with tempfile.TemporaryDirectory() as folder:
        start = text_start(config, Path(folder) / "start", "cpu")
        how = Optimization(learning_rate=1e-4, batch_rows=BATCH)
        with before_training(sft, "train_on", lambda trainer: trainer.add_callback(measured)):
            supervised(SupervisedJob(start=start, optimization=how, compute=COMPUTE), rows, Path(folder) / "out")
    planned = fine_tuning_peak(config, COMPUTE, sharing=Sharing()).total
    return {"layers": layers, "planned": round(planned / GB, 2), "updates": measured.updates}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    logging.disable_progress_bar()
    result = measure(options.layers, options.updates)
    if options.json:
        print(json.dumps(result))
        return
    print(f"planned {result['planned']:.2f} GB")
    for number, update in enumerate(result["updates"], 1):
        print(f"update {number}:", ", ".join(f"{name} {value:.2f}" for name, value in update.items()))


if __name__ == "__main__":
    main()
