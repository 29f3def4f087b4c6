"""Tiny random checkpoints of model families, text-only and multimodal, with one vocabulary."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from transformers import (
    AutoTokenizer,
    Gemma3Config,
    Gemma3ForCausalLM,
    Gemma3ForConditionalGeneration,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    LlavaConfig,
    LlavaForConditionalGeneration,
    Qwen3Config,
    Qwen3ForCausalLM,
    SiglipVisionConfig,
)

from models.embedded import embedded_dir

TOKENS: Final = 4_200
SIZE: dict[str, Any] = {
    "vocab_size": TOKENS,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 2_048,
    "initializer_range": 0.2,
}
_WINDOWS: dict[str, Any] = {
    "sliding_window": 8,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"],
}


def _encoder() -> SiglipVisionConfig:
    return SiglipVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=56,
        patch_size=14,
    )


def multimodal_gemma() -> Any:
    """Like Google's 4B and larger models: a language model beside an encoder whose layers have the same names."""
    return Gemma3ForConditionalGeneration(
        Gemma3Config(
            text_config=Gemma3TextConfig(**SIZE, **_WINDOWS),
            vision_config=_encoder(),
            mm_tokens_per_image=4,
            boi_token_index=TOKENS - 3,
            eoi_token_index=TOKENS - 2,
            image_token_index=TOKENS - 1,
        )
    )


def multimodal_llama() -> Any:
    return LlavaForConditionalGeneration(
        LlavaConfig(vision_config=_encoder(), text_config=LlamaConfig(**SIZE), image_token_index=TOKENS - 1)
    )


FAMILIES: dict[str, Callable[[], Any]] = {
    "gemma3": multimodal_gemma,
    "gemma3_text": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**SIZE, **_WINDOWS)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZE)),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZE)),
}
"""Of the layers that stages train."""
UNTRAINED: dict[str, Callable[[], Any]] = {"llava": multimodal_llama}


def save_family(name: str, folder: Path) -> Path:
    """Writes the checkpoint with the embedded model's tokenizer and, if multimodal, an image processor."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(embedded_dir(), local_files_only=True)
    assert len(tokenizer) < TOKENS - 3
    model = (FAMILIES | UNTRAINED)[name]()
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if name in ("gemma3", "llava"):
        (folder / "preprocessor_config.json").write_text(json.dumps({"image_processor_type": "Gemma3ImageProcessor"}))
    return folder
