"""Writes the shipped folder: weights as float16 safetensors, their graph for ONNX Runtime, tokenizer, and the card that
says how they came about."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import GenerationConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from models.local.declarations import declare_style
from training.embedded.onnx_graph import write_graph

MAX_BYTES = 16_000_000
"""Size limit of the folder, since git keeps every version."""
MAX_ANSWER_TOKENS = 160
"""Completion length limit of the shipped model: an action has about ten tokens, a copied sentence sixty, a plan 120."""


def export(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path, card: Mapping[str, Any]) -> int:
    """Replaces the checkpoint in *folder* and returns its size in bytes. Raises ValueError beyond `MAX_BYTES`."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder, save_jinja_files=False)
    model.generation_config = GenerationConfig(
        max_new_tokens=MAX_ANSWER_TOKENS,
        do_sample=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    copy.deepcopy(model).half().save_pretrained(folder)
    write_graph(folder)
    text = json.dumps(dict(card), indent=1, sort_keys=True)
    (folder / "card.json").write_text(text + "\n", encoding="utf-8")
    declare_style(folder, "compact")
    for path in folder.iterdir():
        path.chmod(0o644) if path.is_file() else None
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    if size > MAX_BYTES:
        raise ValueError(f"{folder} holds {size} bytes, more than {MAX_BYTES}")
    return size
