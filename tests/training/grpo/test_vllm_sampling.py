"""GRPO with completions sampled by a real vLLM, which has the weights of the policy after every update.

By hand: `scripts/vllm_cpu.sh ~/vllm --training && MIRA_VLLM=~/vllm pytest -m heavy tests/training/grpo`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from training.grpo.results import read_log

HOME = os.environ.get("MIRA_VLLM")
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(HOME is None, reason="MIRA_VLLM names no folder of scripts/vllm_cpu.sh"),
]
ROUNDING = 1e-4
"""Largest difference of log-probabilities between two float32 programs."""


@pytest.mark.parametrize(
    "changes",
    [{}, {"compute": {"lora": {"rank": 4, "alpha": 8}}}, {"packing": False}],
    ids=["full", "LoRA", "padded"],
)
def test_the_sampler_has_the_weights_of_the_policy(tmp_path: Path, changes: dict[str, Any]) -> None:
    """The policy moves away from the start by far more than the sampler differs from the policy."""
    words = [f"{HOME}/bin/python", "-m", "tests.training.grpo.vllm_run", str(tmp_path), json.dumps(changes)]
    environ = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1"}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [row for row in read_log(tmp_path / "run") if "grad_norm" in row]
    assert len(rows) == 4 and all(row["grad_norm"] > 0 for row in rows)
    assert rows[-1]["kl"] > 1e-3, "a sampler with the start's weights would be found"
    for row in rows:
        assert row["sampling/sampling_logp_difference/max"] < ROUNDING, row
