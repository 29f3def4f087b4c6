"""Prompts with images, as a sampler at the place of vLLM is sent them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envs.core.errors import BadInput
from tests.training.grpo.fake_vllm import FakeVllm, install_fake_vllm
from tests.training.grpo.place_rewards import reward_by_place
from tests.training.grpo.vision_cases import scored_batch, vision_examples, vision_settings
from training.grpo.frames import limit_pixels
from training.grpo.results import read_log
from training.grpo.run import load_start, train_grpo
from training.grpo.trainer import build_trainer

PLACEHOLDERS = {"Qwen2.5-VL": "<|image_pad|>", "Gemma 3": "<start_of_image>", "SmolVLM": "<image>"}
ROUNDING = 1e-4
"""Largest difference of log-probabilities between two ways to compute them in float32."""


@pytest.fixture(autouse=True)
def sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    install_fake_vllm(monkeypatch)
    reward_by_place(monkeypatch)


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_a_prompt_has_one_placeholder_for_its_image(
    starts: Callable[[str], Path], images: Path, tmp_path: Path, name: str
) -> None:
    """vLLM expands it. The prompts that are trained on have a token for each part of the image."""
    model, processor = load_start(starts(name), vision=True)
    trainer = build_trainer(model, processor, vision_examples(images), vision_settings(vllm={}), tmp_path)
    scored = scored_batch(trainer)
    token = processor.tokenizer.convert_tokens_to_ids(PLACEHOLDERS[name])
    received = FakeVllm.last.received
    assert len(received) == 16 and all(ids.count(token) == 1 for ids in received)
    learned = [ids[mask.bool()].tolist() for ids, mask in zip(scored["prompt_ids"], scored["prompt_mask"], strict=True)]
    assert all(len(whole) > len(ids) for whole, ids in zip(learned, received, strict=True))
    assert scored["sampling_per_token_logps"].isfinite().all()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"max_pixels": 28 * 28 * 2},
        {"compute": {"max_tokens": 256, "threads": 1, "cpu": True, "lora": {"rank": 4}}},
    ],
    ids=["full", "fewer pixels", "LoRA"],
)
def test_the_sampler_sees_what_is_learned_from(
    starts: Callable[[str], Path], images: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    """Prompt, picture and weights, after every update."""
    settings = vision_settings(
        vllm={}, steps=3, kl=0.01, optimization={"batch_rows": 16, "learning_rate": 2e-2, "warmup": 0}, **changes
    )
    examples = vision_examples(images)
    train_grpo(examples, str(starts("Qwen2.5-VL")), tmp_path / "run", settings, log=lambda _: None)
    rows = [row for row in read_log(tmp_path / "run") if "grad_norm" in row]
    assert len(rows) == 3 and rows[-1]["kl"] > 1e-3, "a sampler with the start's weights would be found"
    for row in rows:
        assert row["sampling/sampling_logp_difference/max"] < ROUNDING, row


def test_a_prompt_that_vllm_expands_otherwise_is_refused(
    starts: Callable[[str], Path], images: Path, tmp_path: Path
) -> None:
    """Completions of another prompt would be learned from."""
    model, processor = load_start(starts("Qwen2.5-VL"), vision=True)
    trainer = build_trainer(model, processor, vision_examples(images), vision_settings(vllm={}), tmp_path)
    limit_pixels(FakeVllm.last.processor, None, 28 * 28 * 2)
    with pytest.raises(BadInput, match="16 of 16 prompts with images have other tokens in vLLM than in training"):
        scored_batch(trainer)
