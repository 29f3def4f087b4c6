"""Tiny vision-language models of real architectures with random weights, in folders as their publishers lay them out.

`ARCHITECTURES` has a builder by name: it writes a checkpoint to an empty folder and returns the folder. One byte of
text is one token. Weights are drawn with a deviation of 0.2: with the usual 0.02 a tiny model answers almost evenly,
and a mistake in its inputs does not show.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.tiny_models.byte_core import byte_core

QWEN_SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>"),
    *("<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>"),
    *("<|image_pad|>", "<|video_pad|>"),
)
QWEN_TEMPLATE = """\
{% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|im_start|>system
You are a helpful assistant.<|im_end|>
{% endif %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}<|im_end|>
{% else %}{% for content in message['content'] %}{% if content['type'] == 'image' %}\
<|vision_start|><|image_pad|><|vision_end|>{% elif content['type'] == 'video' %}\
<|vision_start|><|video_pad|><|vision_end|>{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}\
<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
SPREAD = 0.2


def byte_tokenizer(special: tuple[str, ...], **named: Any) -> Any:
    """A token a byte, and the *special* ones."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=byte_core(), additional_special_tokens=list(special), **named)


def _write_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(values), encoding="utf-8")


def _ids(tokenizer: Any, **tokens: str) -> dict[str, Any]:
    return {name: tokenizer.convert_tokens_to_ids(token) for name, token in tokens.items()}


def _save(model: Any, tokenizer: Any, out: Path) -> Path:
    """Without the processor, whose files are its publisher's."""
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out


def write_qwen_processor(out: Path, kind: str, video: str, patch: int, most: int = 64) -> None:
    """Writes the image and video processor of class *kind*; an image has at most *most* patches."""
    pixels = {"min_pixels": 4 * patch * patch, "max_pixels": most * patch * patch}
    _write_json(
        out / "preprocessor_config.json",
        **pixels,
        patch_size=patch,
        temporal_patch_size=2,
        merge_size=2,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
        image_processor_type="Qwen2VLImageProcessor",
        processor_class=kind,
    )
    _write_json(
        out / "video_preprocessor_config.json",
        **pixels,
        patch_size=patch,
        temporal_patch_size=2,
        merge_size=2,
        video_processor_type=video,
        processor_class=kind,
    )
    (out / "chat_template.jinja").write_text(QWEN_TEMPLATE, encoding="utf-8")


def qwen2_5_vl(out: Path) -> Path:
    """Qwen2.5-VL: 14-pixel patches, four of which make a token; positions in three dimensions."""
    import torch
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    tokenizer = byte_tokenizer(QWEN_SPECIAL, pad_token="<|endoftext|>", eos_token="<|im_end|>")
    torch.manual_seed(0)
    model = Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(
            text_config={
                "vocab_size": len(tokenizer),
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "num_key_value_heads": 1,
                "max_position_embeddings": 1024,
                "initializer_range": SPREAD,
                "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 3, 3]},
                "bos_token_id": None,
                "eos_token_id": tokenizer.eos_token_id,
                "pad_token_id": tokenizer.pad_token_id,
            },
            vision_config={
                "depth": 2,
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_heads": 2,
                "out_hidden_size": 32,
                "fullatt_block_indexes": [1],
                "initializer_range": SPREAD,
            },
            initializer_range=SPREAD,  # pyright: ignore[reportCallIssue]  # of the base class
            **_ids(
                tokenizer,
                image_token_id="<|image_pad|>",
                video_token_id="<|video_pad|>",
                vision_start_token_id="<|vision_start|>",
                vision_end_token_id="<|vision_end|>",
            ),
        )
    )
    _save(model, tokenizer, out)
    write_qwen_processor(out, "Qwen2_5_VLProcessor", "Qwen2VLVideoProcessor", 14)
    return out


def qwen3_vl(out: Path) -> Path:
    """Qwen3-VL: 16-pixel patches, and features of inner layers of the encoder."""
    import torch
    from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

    tokenizer = byte_tokenizer(QWEN_SPECIAL, pad_token="<|endoftext|>", eos_token="<|im_end|>")
    torch.manual_seed(0)
    model = Qwen3VLForConditionalGeneration(
        Qwen3VLConfig(
            text_config={
                "vocab_size": len(tokenizer),
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "num_key_value_heads": 1,
                "head_dim": 16,
                "max_position_embeddings": 1024,
                "initializer_range": SPREAD,
                "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [2, 3, 3]},
                "pad_token_id": tokenizer.pad_token_id,
            },
            vision_config={
                "depth": 2,
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_heads": 2,
                "out_hidden_size": 32,
                "num_position_embeddings": 64,
                "deepstack_visual_indexes": [0],
                "initializer_range": SPREAD,
            },
            **_ids(
                tokenizer,
                image_token_id="<|image_pad|>",
                video_token_id="<|video_pad|>",
                vision_start_token_id="<|vision_start|>",
                vision_end_token_id="<|vision_end|>",
            ),
        )
    )
    _save(model, tokenizer, out)
    write_qwen_processor(out, "Qwen3VLProcessor", "Qwen3VLVideoProcessor", 16)
    return out


GEMMA_TEMPLATE = """\
{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] %}\
{% set prefix = first if first is string else first[0]['text'] %}{% set messages = messages[1:] %}{% endif %}\
{% for message in messages %}<start_of_turn>{{ 'model' if message['role'] == 'assistant' else message['role'] }}
{% if loop.first and prefix %}{{ prefix }}

{% endif %}{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for item in message['content'] %}\
{% if item['type'] == 'image' %}<start_of_image>{% else %}{{ item['text'] }}{% endif %}{% endfor %}{% endif %}\
<end_of_turn>
{% endfor %}{% if add_generation_prompt %}<start_of_turn>model
{% endif %}"""


def gemma3(out: Path) -> Path:
    """Gemma 3: images of one size, whose tokens see each other; a token for the beginning of a text."""
    import torch
    from tokenizers.processors import TemplateProcessing
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration

    special = ("<start_of_turn>", "<start_of_image>", "<end_of_image>", "<image_soft_token>")
    tokenizer = byte_tokenizer(
        special,
        pad_token="<pad>",
        eos_token="<end_of_turn>",
        bos_token="<bos>",
        boi_token="<start_of_image>",
        eoi_token="<end_of_image>",
        image_token="<image_soft_token>",
    )
    begin = ("<bos>", tokenizer.bos_token_id)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<bos> $A", special_tokens=[begin])
    torch.manual_seed(0)
    model = Gemma3ForConditionalGeneration(
        Gemma3Config(
            text_config={
                "vocab_size": len(tokenizer),
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "num_key_value_heads": 1,
                "head_dim": 16,
                "query_pre_attn_scalar": 16,
                "sliding_window": 16,
                "layer_types": ["sliding_attention", "full_attention"],
                "max_position_embeddings": 1024,
                "initializer_range": SPREAD,
                "bos_token_id": tokenizer.bos_token_id,
                "eos_token_id": tokenizer.eos_token_id,
                "pad_token_id": tokenizer.pad_token_id,
            },
            vision_config={
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "image_size": 64,
                "patch_size": 16,
            },
            mm_tokens_per_image=4,
            initializer_range=SPREAD,
            **_ids(
                tokenizer,
                boi_token_index="<start_of_image>",
                eoi_token_index="<end_of_image>",
                image_token_index="<image_soft_token>",
            ),
        )
    )
    # It begins at zero, and images would make no difference.
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight, std=SPREAD)
    _save(model, tokenizer, out)
    _write_json(
        out / "preprocessor_config.json",
        size={"height": 64, "width": 64},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
        image_seq_length=4,
        image_processor_type="Gemma3ImageProcessor",
        processor_class="Gemma3Processor",
    )
    _write_json(out / "processor_config.json", image_seq_length=4, processor_class="Gemma3Processor")
    (out / "chat_template.jinja").write_text(GEMMA_TEMPLATE, encoding="utf-8")
    return out


TILES = tuple(f"<row_{row}_col_{column}>" for row in range(1, 3) for column in range(1, 3))
IDEFICS_TEMPLATE = """\
<|begin_of_text|>{% for message in messages %}{{ message['role'] | capitalize }}:{% if message['content'] is string %} \
{{ message['content'] }}{% else %}{% for line in message['content'] %}{% if line['type'] == 'text' %}{{ line['text'] }}\
{% elif line['type'] == 'image' %}<image>{% endif %}{% endfor %}{% endif %}<end_of_utterance>
{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"""


SMOLVLM_TEMPLATE = """\
<|im_start|>{% for message in messages %}{{ message['role'] | capitalize }}\
{% if message['content'] is string %}: {{ message['content'] }}{% else %}\
{{ ':' if message['content'][0]['type'] == 'image' else ': ' }}{% for line in message['content'] %}\
{% if line['type'] == 'text' %}{{ line['text'] }}{% elif line['type'] == 'image' %}<image>{% endif %}{% endfor %}\
{% endif %}\
<end_of_utterance>
{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"""


def idefics3(out: Path) -> Path:
    """Idefics 3 and the first SmolVLM: an image is cut into tiles, and shown once whole."""
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration

    special = ("<|begin_of_text|>", "<image>", "<fake_token_around_image>", "<global-img>", *TILES)
    tokenizer = byte_tokenizer(special, pad_token="<pad>", eos_token="<end_of_utterance>")
    _save(_tiled(Idefics3Config, Idefics3ForConditionalGeneration, tokenizer), tokenizer, out)
    _write_json(out / "preprocessor_config.json", **_tiling("Idefics3"))
    _write_json(out / "processor_config.json", image_seq_len=4, processor_class="Idefics3Processor")
    (out / "chat_template.jinja").write_text(IDEFICS_TEMPLATE, encoding="utf-8")
    return out


def smolvlm(out: Path) -> Path:
    """SmolVLM 2: tiles as in Idefics 3, and videos, whose frames its processor counts in words."""
    from transformers import SmolVLMConfig, SmolVLMForConditionalGeneration

    special = ("<|im_start|>", "<image>", "<fake_token_around_image>", "<global-img>", *TILES)
    tokenizer = byte_tokenizer(special, pad_token="<pad>", eos_token="<end_of_utterance>")
    _save(_tiled(SmolVLMConfig, SmolVLMForConditionalGeneration, tokenizer), tokenizer, out)
    sampling = {"fps": 1, "max_frames": 8, "video_size": {"longest_edge": 32}}
    _write_json(out / "preprocessor_config.json", **_tiling("SmolVLM"), video_sampling=sampling)
    _write_json(out / "processor_config.json", image_seq_len=4, processor_class="SmolVLMProcessor")
    (out / "chat_template.jinja").write_text(SMOLVLM_TEMPLATE, encoding="utf-8")
    return out


def _tiling(family: str) -> dict[str, Any]:
    return {
        "size": {"longest_edge": 64},
        "max_image_size": {"longest_edge": 32},
        "do_image_splitting": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "image_processor_type": f"{family}ImageProcessor",
        "processor_class": f"{family}Processor",
    }


def _tiled(config: Any, kind: Any, tokenizer: Any) -> Any:
    """A model that reads an image in tiles of 32 pixels."""
    import torch

    torch.manual_seed(0)
    return kind(
        config(
            text_config={
                "model_type": "llama",
                "vocab_size": len(tokenizer),
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "max_position_embeddings": 1024,
                "initializer_range": SPREAD,
                "bos_token_id": None,
                "eos_token_id": tokenizer.eos_token_id,
                "pad_token_id": tokenizer.pad_token_id,
            },
            vision_config={
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "image_size": 32,
                "patch_size": 8,
                "initializer_range": SPREAD,
            },
            scale_factor=2,
            pad_token_id=tokenizer.pad_token_id,
            initializer_range=SPREAD,
            **_ids(tokenizer, image_token_id="<image>"),
        )
    )


def llava(out: Path) -> Path:
    """LLaVA: images of one size, a projection, a Llama. One printable character is one token."""
    import torch
    from transformers import LlavaForConditionalGeneration

    from benchmarks.toy_models.vision import vision_model

    vision_model(out, side=32, patch=16, width=32, layers=1)
    model: Any = LlavaForConditionalGeneration.from_pretrained(out)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.mul_(SPREAD / 0.02)
    model.save_pretrained(out)
    return out


ARCHITECTURES: Final[Mapping[str, Callable[[Path], Path]]] = {
    "Qwen2.5-VL": qwen2_5_vl,
    "Qwen3-VL": qwen3_vl,
    "SmolVLM": smolvlm,
    "Gemma 3": gemma3,
    "Idefics 3": idefics3,
    "LLaVA": llava,
}
"""Builders by name. Each writes a checkpoint to an empty or absent folder."""
