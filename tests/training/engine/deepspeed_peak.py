"""A stage under DeepSpeed whose memory is measured: `python -m tests.training.engine.deepspeed_peak training.engine
FOLDER`, under a launcher. Each process writes the bytes at its peak to FOLDER/peak-RANK."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.training.engine.deepspeed_on_cpu import allow_deepspeed_on_a_cpu
from tests.training.engine.fsdp_on_cpu import TWO
from tests.training.engine.test_memory_plan import peak_while
from training.engine import stage_jobs
from training.engine.__main__ import work
from training.engine.worker import run

MEASURED = (*TWO, "tests.training.engine.deepspeed_peak")
"""A launcher of two processes."""

_train = stage_jobs.train


def _measured(trainer: Any, *arguments: Any) -> Any:
    logs: list[Any] = []
    peak = peak_while(trainer.model, lambda: logs.append(_train(trainer, *arguments)))
    Path(sys.argv[2], f"peak-{os.environ['RANK']}").write_text(str(peak), encoding="utf-8")
    return logs[0]


if __name__ == "__main__":
    allow_deepspeed_on_a_cpu()
    stage_jobs.train = _measured
    run(work, sys.argv[2:])
