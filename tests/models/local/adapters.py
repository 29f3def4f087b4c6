"""A real, small LoRA adapter, made by PEFT, with random weights so that it changes answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def save_adapter(base: Path, folder: Path, *, seed: int = 0, size: float = 0.02, **settings: Any) -> Path:
    """Writes an adapter of *base* whose B matrices are noise of standard deviation *size* (PEFT starts with zero)."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, local_files_only=True)
    given: dict[str, Any] = {
        "r": 8,
        "lora_alpha": 16,
        "target_modules": list(PROJECTIONS),
        "task_type": "CAUSAL_LM",
        **settings,
    }
    adapted = get_peft_model(model, LoraConfig(**given))
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_B" in name or "lora_embedding_B" in name:
                weight.normal_(0.0, size)
    adapted.save_pretrained(str(folder))
    return folder
