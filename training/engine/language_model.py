"""What stages train of a checkpoint: the language model. A multimodal checkpoint also holds encoders of pictures; rows
are text, so encoders would get no gradient, and they stay as they are."""

from __future__ import annotations

import re
from typing import Any

from torch import nn


def hidden_width(config: Any) -> int:
    """Width of the hidden states that a head reads, of the language model where *config* is of several models."""
    return int(config.get_text_config().hidden_size)


def freeze_encoders(model: Any) -> None:
    """Only the language model of *model* and its head have gradients."""
    decoder, head = model.get_decoder(), model.get_output_embeddings()
    if decoder is model.base_model:
        return
    model.requires_grad_(requires_grad=False)
    for part in (decoder, head):
        if isinstance(part, nn.Module):
            part.requires_grad_(requires_grad=True)


def encoder_layers(model: Any, targets: tuple[str, ...]) -> str | None:
    """For PEFT's `exclude_modules`: a pattern of the layers outside the language model. None where no layer there has a
    name among *targets*."""
    decoder = model.get_decoder()
    prefix = next((name for name, part in model.named_modules() if part is decoder), "")
    if not prefix:
        return None
    outside = (name for name, _ in model.named_modules() if not name.startswith(f"{prefix}."))
    if not any(name.rpartition(".")[2] in targets for name in outside):
        return None
    return rf"(?!{re.escape(prefix)}\.).*"
