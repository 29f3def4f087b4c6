"""The weights of an adapted policy, as a sampler at the place of vLLM is sent them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.toy_models.puzzles import fresh_model
from tests.training.grpo.fake_vllm import FakeVllm, install_fake_vllm
from training.grpo.puzzles import make_puzzles
from training.grpo.run import load_start
from training.grpo.settings import parse_settings
from training.grpo.trainer import build_trainer

MAZES = make_puzzles("maze", 12, seed=0, size=3)


@pytest.mark.parametrize("bf16", [True, False], ids=["bfloat16", "float32"])
def test_sending_adapted_weights_leaves_the_frozen_ones_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bf16: bool
) -> None:
    """Adapters that are added to weights and subtracted again leave a rounding, after every update."""
    install_fake_vllm(monkeypatch)
    compute = {"max_tokens": 128, "threads": 1, "cpu": True, "bf16": bf16, "lora": {"rank": 4}}
    options: dict[str, Any] = {"group": 4, "answer_tokens": 6, "optimization": {"batch_rows": 8}, "vllm": {}}
    settings = parse_settings({**options, "compute": compute}, "here")
    model, tokenizer = load_start(fresh_model(tmp_path / "start", width=32, layers=2), vision=False)
    trainer = build_trainer(model, tokenizer, MAZES, settings, tmp_path / "checkpoints")
    frozen = {name: weight for name, weight in trainer.model.named_parameters() if not weight.requires_grad}
    before = {name: weight.detach().clone() for name, weight in frozen.items()}
    adapted = [part for part in trainer.model.modules() if hasattr(part, "lora_B")]
    torch.manual_seed(0)
    for _ in range(3):
        for part in adapted:
            part.lora_B["default"].weight.data.normal_(std=0.05)
        trainer.vllm_generation.sync_weights()
        assert all(torch.equal(weight, before[name]) for name, weight in frozen.items())
    assert not any(part.merged for part in adapted)
    sent = dict(FakeVllm.last.model.named_parameters())
    expected = trainer.model.merge_and_unload()
    for name, weight in expected.named_parameters():
        torch.testing.assert_close(sent[name], weight.to(sent[name].dtype), rtol=0, atol=0)
