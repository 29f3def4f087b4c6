"""Which layers of a vision-language model get adapters, in GRPO and in supervised fine-tuning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.training.grpo.vision_cases import vision_examples, vision_settings
from training.engine.settings import Compute, Optimization
from training.grpo.imitation import imitate
from training.grpo.imitation_settings import ImitationSettings
from training.grpo.run import load_start
from training.grpo.trainer import build_trainer

COMPUTE: dict[str, Any] = {"max_tokens": 256, "threads": 1, "cpu": True, "lora": {"rank": 2}}
ENCODERS = {"Qwen2.5-VL": {"gate_proj", "up_proj", "down_proj"}, "Gemma 3": {"q_proj", "k_proj", "v_proj"}}
"""Adapted layers of the encoder, by the last part of their names."""


def of_encoder(names: Mapping[str, Any]) -> set[str]:
    return {
        part for name in names if "vision" in name or "visual" in name for part in name.split(".") if "_proj" in part
    }


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("frozen", [True, False], ids=["frozen", "trained"])
def test_grpo_and_sft_adapt_the_same_layers(
    starts: Callable[[str], Path], images: Path, tmp_path: Path, name: str, *, frozen: bool
) -> None:
    examples, expected = vision_examples(images), set[str]() if frozen else ENCODERS[name]
    model, processor = load_start(starts(name), vision=True)
    config = vision_settings(compute=COMPUTE, freeze_vision=frozen)
    trainer = build_trainer(model, processor, examples, config, tmp_path / "grpo")
    learning = {key: weight for key, weight in trainer.model.named_parameters() if weight.requires_grad}
    assert of_encoder(learning) == expected
    how = ImitationSettings(
        steps=2,
        freeze_vision=frozen,
        optimization=Optimization(learning_rate=1e-2, batch_rows=4),
        compute=Compute.model_validate(COMPUTE),
    )
    result = imitate(examples[:4], str(starts(name)), tmp_path / "sft", how, log=lambda _: None)
    before, after = load_file(starts(name) / "model.safetensors"), load_file(result.model / "model.safetensors")
    assert of_encoder({key: None for key in after if not torch.equal(after[key], before[key])}) == expected


def test_text_adapts_the_language_model_alone(starts: Callable[[str], Path], images: Path, tmp_path: Path) -> None:
    """Adapters of an encoder that sees nothing would be saved untrained."""
    texts = [one.model_copy(update={"image": None}) for one in vision_examples(images)]
    model, tokenizer = load_start(starts("Gemma 3"), vision=False)
    trainer = build_trainer(model, tokenizer, texts, vision_settings(compute=COMPUTE), tmp_path)
    learning = {key for key, weight in trainer.model.named_parameters() if weight.requires_grad}
    assert learning and not of_encoder(dict.fromkeys(learning))
