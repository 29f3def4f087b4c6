"""A vision model under two processes, also with DeepSpeed's ZeRO 2, learns what it learns in one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from trl.trainer.grpo_trainer import GRPOTrainer

from tests.training.engine.deepspeed_on_cpu import ZERO_2, needs_deepspeed
from tests.training.grpo.scripted_processes import SCRIPTED, scripted
from tests.training.grpo.vision_cases import vision_examples, vision_settings
from training.grpo.run import train_grpo

torch.set_num_threads(1)
COMPUTE: dict[str, Any] = {"max_tokens": 256, "threads": 1, "cpu": True}


ADAPTERS: dict[str, Any] = {"compute": {**COMPUTE, "lora": {"rank": 4, "alpha": 8}}, "freeze_vision": True}


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("changes", "environ"),
    [
        pytest.param({}, {}, id="every weight"),
        pytest.param(ADAPTERS, {}, id="adapters"),
        pytest.param({}, ZERO_2, id="every weight, ZeRO 2", marks=needs_deepspeed),
        pytest.param(ADAPTERS, ZERO_2, id="adapters, ZeRO 2", marks=needs_deepspeed),
    ],
)
def test_two_processes_learn_what_one_learns(
    starts: Callable[[str], Path],
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    changes: dict[str, Any],
    environ: dict[str, str],
) -> None:
    """The same prompts, rewards and updates, up to the order of sums. Images have three sizes, so that the processes'
    batches differ in shape."""
    start, examples = starts("Qwen2.5-VL"), vision_examples(images)
    monkeypatch.setattr(GRPOTrainer, "_generate_single_turn", scripted)
    logs: dict[str, list[dict[str, float]]] = {}
    for name, launcher in (("one", ()), ("two", SCRIPTED)):
        for key, value in environ.items() if launcher else ():
            monkeypatch.setenv(key, value)
        config = vision_settings(launcher=launcher, kl=0.01, **changes)
        train_grpo(examples, str(start), tmp_path / name, config, log=list[str]().append)
        logs[name] = [row for row in json.loads((tmp_path / name / "log.json").read_text()) if "reward" in row]
    assert len(logs["one"]) == 2 and all(row["reward_std"] > 0 for row in logs["one"])
    for key in ("reward", "kl", "part/correct"):
        assert [row[key] for row in logs["two"]] == pytest.approx([row[key] for row in logs["one"]], abs=1e-5), key
    before, one, two = (
        load_file(folder / "model.safetensors")
        for folder in (start, tmp_path / "one" / "model", tmp_path / "two" / "model")
    )
    assert one.keys() == two.keys()
    moved = {name: float((one[name] - before[name]).square().sum()) for name in one}
    apart = sum(float((one[name] - two[name]).square().sum()) for name in one)
    assert apart < 1e-3 * sum(moved.values()), "Adam makes rounding errors of tiny gradients larger"
    assert any(moved[name] for name in moved if "visual" in name) == (not changes), "the encoder learns unless frozen"
