"""FSDP without a GPU: `python -m tests.training.engine.fsdp_on_cpu MODULE FOLDER`, under a launcher; MODULE is
`training.engine` or `training.grpo`.

PyTorch shards weights on a CPU as on a GPU; accelerate turns its plugin on for GPUs alone. That one decision is taken
for it here, with the precision that it sets then; everything after it is accelerate's and transformers' own.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from accelerate.state import AcceleratorState
from accelerate.utils import DistributedType

from training.engine.__main__ import work
from training.engine.worker import run
from training.grpo.run import run_launched_part

TWO = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m")
"""A launcher of two processes, each with the full model."""
SHARDED = (*TWO, "tests.training.engine.fsdp_on_cpu")
"""A launcher of two processes that shard the model, with these environment variables:"""
WHAT_ACCELERATE_TELLS = {
    "ACCELERATE_USE_CPU": "true",
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_CPU_RAM_EFFICIENT_LOADING": "true",
}
"""Environment variables of `accelerate launch --use_fsdp --fsdp_version 2`."""

_decide = AcceleratorState.__init__


@functools.wraps(_decide)
def _shard_on_a_cpu(self: Any, *args: Any, fsdp_plugin: Any = None, **others: Any) -> None:
    _decide(self, *args, fsdp_plugin=fsdp_plugin, **others)
    plugin = fsdp_plugin or self.__dict__.get("fsdp_plugin")
    if plugin is not None and self.distributed_type == DistributedType.MULTI_CPU:
        self.distributed_type, self.fsdp_plugin = DistributedType.FSDP, plugin
        if fsdp_plugin is not None and self._mixed_precision != "no":
            plugin.set_mixed_precision(self._mixed_precision)


if __name__ == "__main__":
    AcceleratorState.__init__ = _shard_on_a_cpu  # type: ignore[method-assign]
    run({"training.engine": work, "training.grpo": run_launched_part}[sys.argv[1]], sys.argv[2:])
