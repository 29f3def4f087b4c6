"""Builds a small vision model: a SigLIP encoder and a Llama, connected as in LLaVA (Liu et al. 2023)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.toy_models.tokens import closed_tokenizer
from training.grpo.run import save_start

IMAGE = "<image>"
SIDE, PATCH = 160, 16
"""Pixels of the image that the encoder sees, and of a patch."""
TEMPLATE = """\
{%- for message in messages -%}
{%- if message.content is string %}{{ message.content }}
{%- else %}{% for part in message.content %}{{ '<image>' if part.type == 'image' else part.text }}{% endfor %}
{%- endif %}{{ '\n' }}
{%- endfor %}"""


def character_tokenizer(*words: str) -> Any:
    """Builds a tokenizer for printable ASCII with one token per character, and one for each of *words*."""
    from tokenizers import Regex

    characters = ["\n", *(chr(code) for code in range(32, 127))]
    pattern = Regex("|".join([*words, "(?m:.)"])) if words else ""
    return closed_tokenizer([IMAGE, *characters, *words], pattern, extra_special_tokens=[IMAGE])


def patch_window(size: tuple[int, int], side: int = SIDE, patch: int = PATCH) -> tuple[int, int]:
    """Width and height in pixels of the part of an image of *size* that one patch of the encoder shows, which scales
    images to *side* x *side* pixels."""
    return size[0] * patch // side, size[1] * patch // side


def vision_model(
    out: Path,
    *,
    side: int = SIDE,
    patch: int = PATCH,
    width: int = 128,
    layers: int = 4,
    seed: int = 0,
    tokenizer: Any = None,
) -> Path:
    """Writes a randomly initialised checkpoint to *out*. Images are scaled to *side* x *side* pixels and split into
    patches of *patch* pixels. Encoder and language model have *layers* layers of width *width*. Without a *tokenizer*
    it has that of :func:`character_tokenizer`."""
    import torch
    from transformers import (
        CLIPImageProcessorPil,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
        SiglipVisionConfig,
    )

    tokenizer = character_tokenizer() if tokenizer is None else tokenizer
    heads = max(1, width // 32)
    vision = SiglipVisionConfig(
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        image_size=side,
        patch_size=patch,
    )
    text = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=1_024,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=True,
    )
    torch.manual_seed(seed)
    model = LlavaForConditionalGeneration(
        LlavaConfig(
            vision_config=vision,
            text_config=text,
            image_token_index=tokenizer.convert_tokens_to_ids(IMAGE),
            vision_feature_select_strategy="full",
            vision_feature_layer=-1,
            tie_word_embeddings=True,
        )
    )
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    pictures = CLIPImageProcessorPil(
        size={"height": side, "width": side}, do_center_crop=False, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    processor = LlavaProcessor(
        pictures,
        tokenizer,
        patch_size=patch,
        vision_feature_select_strategy="full",
        chat_template=TEMPLATE,
        image_token=IMAGE,
        num_additional_image_tokens=0,
    )
    save_start(model, processor, out)
    return out
