"""DeepSpeed without a GPU: `python -m tests.training.engine.deepspeed_on_cpu MODULE FOLDER`, under a launcher; MODULE
is `training.engine` or `training.grpo`.

DeepSpeed partitions optimizer states on a CPU as on a GPU; accelerate starts it on GPUs alone. That one decision is
taken for it here; everything after it is accelerate's, transformers' and DeepSpeed's own.
"""

from __future__ import annotations

import functools
import sys
from importlib.util import find_spec
from typing import Any

import pytest
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType

from tests.training.engine.fsdp_on_cpu import TWO
from training.engine.__main__ import work
from training.engine.worker import run
from training.grpo.run import run_launched_part

PARTITIONED = (*TWO, "tests.training.engine.deepspeed_on_cpu")
"""A launcher of two processes with DeepSpeed, with these environment variables:"""
ZERO_2 = {
    "ACCELERATE_USE_CPU": "false",  # it would turn DeepSpeed off
    "ACCELERATE_USE_DEEPSPEED": "true",
    "ACCELERATE_DEEPSPEED_ZERO_STAGE": "2",
    "DS_ACCELERATOR": "cpu",
}
"""Environment variables of `accelerate launch --use_deepspeed --zero_stage 2`, and DeepSpeed's own for CPUs."""

needs_deepspeed = pytest.mark.skipif(find_spec("deepspeed") is None, reason="needs the extra `deepspeed`")

_decide = AcceleratorState.__init__
_start = PartialState.__init__


@functools.wraps(_start)
def _start_deepspeed(self: Any, cpu: bool = False, **options: Any) -> None:
    started = self.initialized
    _start(self, cpu, **options)
    if not started and self.distributed_type == DistributedType.MULTI_CPU:
        from deepspeed import comm  # pyright: ignore[reportMissingImports] - an extra

        comm.init_distributed(dist_backend=self.backend, auto_mpi_discovery=False)
        self.distributed_type = DistributedType.DEEPSPEED


@functools.wraps(_decide)
def _use_deepspeed(self: Any, mixed_precision: Any = None, cpu: bool = False, *args: Any, **options: Any) -> None:
    PartialState(cpu=True)
    _decide(self, mixed_precision, False, *args, **options)


def allow_deepspeed_on_a_cpu() -> None:
    PartialState.__init__ = _start_deepspeed  # type: ignore[method-assign]
    AcceleratorState.__init__ = _use_deepspeed  # type: ignore[method-assign]


if __name__ == "__main__":
    allow_deepspeed_on_a_cpu()
    run({"training.engine": work, "training.grpo": run_launched_part}[sys.argv[1]], sys.argv[2:])
