"""A run of GRPO that samples with vLLM, for the Python of `scripts/vllm_cpu.sh FOLDER --training`:

python -m tests.training.grpo.vllm_run OUT '{"compute": {"lora": {"rank": 4}}}'
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.toy_models.puzzles import fresh_model
from training.grpo.puzzles import make_puzzles
from training.grpo.rewards import Rewarder, Score
from training.grpo.run import train_grpo
from training.grpo.settings import parse_settings


def reward_of_length(_rewarder: Rewarder, _target: Any, texts: list[str], *_: Any) -> list[Score]:
    """A reward that an untrained model gets unequal amounts of."""
    return [Score(len(text) / 10) for text in texts]


def main(out: Path, changes: dict[str, Any]) -> None:
    start = fresh_model(out / "start", width=64, layers=2)  # heads of 32 numbers, which vLLM's CPU attention takes
    compute = {"max_tokens": 128, "threads": 1, "cpu": True, **changes.pop("compute", {})}
    options: dict[str, Any] = {
        "group": 4,
        "answer_tokens": 8,
        "micro_rows": 8,
        "steps": 4,
        "kl": 0.01,
        "vllm": {"memory": 0.1},
        "optimization": {"batch_rows": 16, "learning_rate": 2e-2, "warmup": 0, "epochs": 1},
        "compute": compute,
        **changes,
    }
    puzzles = make_puzzles("maze", 16, seed=0, size=5)
    with patch.object(Rewarder, "of_group", reward_of_length):
        train_grpo(puzzles, str(start), out / "run", parse_settings(options, "test"), log=print)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
