"""GRPO with scripted completions: `python -m tests.training.grpo.scripted_processes training.grpo FOLDER`, under a
launcher.

Processes draw different completions, so that a run of two cannot be compared with a run of one. Here the model samples
as always, and then the completions of every group are replaced by the same four.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Final

from trl.trainer.grpo_trainer import GRPOTrainer

from tests.training.engine.deepspeed_on_cpu import allow_deepspeed_on_a_cpu
from tests.training.engine.fsdp_on_cpu import TWO
from training.engine.worker import run
from training.grpo.run import run_launched_part

ANSWERS: Final = ("8, 16", "3 11", "30,60", "there")
"""A right answer, two wrong ones at different distances, and one without a point."""
SCRIPTED: Final = (*TWO, "tests.training.grpo.scripted_processes")
"""A launcher of two processes whose completions are scripted."""

_generate = GRPOTrainer._generate_single_turn  # pyright: ignore[reportPrivateUsage]


@functools.wraps(_generate)
def scripted(self: Any, *arguments: Any, **options: Any) -> Any:
    """Stands for `GRPOTrainer._generate_single_turn`."""
    sampled, logprobs = _generate(self, *arguments, **options)
    tokenizer = self._tokenizer
    texts = [ANSWERS[place % len(ANSWERS)] for place in range(len(sampled))]
    ids = [[*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id] for text in texts]
    return ids, logprobs


if __name__ == "__main__":
    if "ACCELERATE_USE_DEEPSPEED" in os.environ:
        allow_deepspeed_on_a_cpu()
    GRPOTrainer._generate_single_turn = scripted  # pyright: ignore[reportPrivateUsage]
    run(run_launched_part, sys.argv[2:])
