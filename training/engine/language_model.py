"""Selects the part of a checkpoint that stages train: the language model. The image encoders of a multimodal checkpoint
stay frozen: rows are text, so they would get no gradients."""

from __future__ import annotations

import re
from typing import Any

from torch import nn


def hidden_width(config: Any) -> int:
    """Width of the hidden states that a head reads; of a multimodal *config*, the language model's."""
    return int(config.get_text_config().hidden_size)


def freeze_encoders(model: Any) -> None:
    """Freezes everything of *model* except the language model and its head."""
    decoder, head = model.get_decoder(), model.get_output_embeddings()
    if decoder is model.base_model:
        return
    model.requires_grad_(requires_grad=False)
    for part in (decoder, head):
        if isinstance(part, nn.Module):
            part.requires_grad_(requires_grad=True)


def encoder_layers(model: Any, targets: tuple[str, ...]) -> str | None:
    """A pattern of the layers outside the language model, for PEFT's `exclude_modules`. None where none of them has a
    name in *targets*."""
    decoder = model.get_decoder()
    prefix = next((name for name, part in model.named_modules() if part is decoder), "")
    if not prefix:
        return None
    outside = (name for name, _ in model.named_modules() if not name.startswith(f"{prefix}."))
    if not any(name.rpartition(".")[2] in targets for name in outside):
        return None
    return rf"(?!{re.escape(prefix)}\.).*"
