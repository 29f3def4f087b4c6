"""A tiny random Qwen 2 as a GGUF file, written with llama.cpp's own package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers import pre_tokenizers
from transformers import Qwen2Config, Qwen2ForCausalLM

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
CONTEXT = 512
KEY_VALUE_HEADS = 2
_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attn_norm",
}


def write_gguf(file: Path, *, kind: str = "Q8_0", seed: int = 0, parts: int = 1, end: str = "<|im_end|>") -> Any:
    """Writes *file* with matrices of *kind* (`Q8_0`, `Q4_0`, `F32`, …) and returns the model with its weights. *end*:
    the end token that it declares; the chat template ends a turn with `<|im_end|>`."""
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġt", *SPECIALS]
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokens),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=KEY_VALUE_HEADS,
        max_position_embeddings=CONTEXT,
        initializer_range=0.2,
        tie_word_embeddings=False,
        eos_token_id=tokens.index(end),
        bos_token_id=None,
    )
    model: Any = Qwen2ForCausalLM(config).eval()
    writer = gguf.GGUFWriter(str(file), "qwen2")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(KEY_VALUE_HEADS)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (len(tokens) - len(SPECIALS)) + [3] * len(SPECIALS))
    writer.add_token_merges(["Ġ t"])
    writer.add_eos_token_id(tokens.index(end))
    writer.add_pad_token_id(len(tokens) - len(SPECIALS))
    writer.add_chat_template(TEMPLATE)
    if parts > 1:
        writer.add_uint16("split.count", parts)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            stored = gguf.GGMLQuantizationType[kind if weight.ndim == 2 else "F32"]
            packed = gguf.quantize(weight.numpy().astype(np.float32), stored)
            writer.add_tensor(_name(name), packed, raw_dtype=stored)
            weight.copy_(torch.from_numpy(gguf.dequantize(packed, stored)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _name(name: str) -> str:
    """The tensor's name in llama.cpp."""
    module, _, part = name.rpartition(".")
    if module.startswith("model.layers."):
        number, _, rest = module.removeprefix("model.layers.").partition(".")
        return f"blk.{number}.{_NAMES[rest]}.{part}"
    return f"{_NAMES[module]}.{part}"
