"""Rotary embeddings that depend on the length of the text: which texts may share a pass.

With rope type `longrope` (Phi-3, Phi-4-mini) a pass whose longest text has more tokens than the model's original length
uses other frequencies for all its texts; with `dynamic` (InternLM 3) each such length has frequencies of its own. A
packed sequence therefore holds texts of one class of lengths only (:func:`length_class`): each then has the
frequencies that it has alone.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from transformers import PreTrainedModel

from training.data.packing import LengthClass


def length_class(model: nn.Module) -> LengthClass:
    """The classes of lengths of *model*, or of the transformers model in it: all lengths are of one class, unless its
    rotary embedding depends on them."""
    config: Any = next(part.config for part in model.modules() if isinstance(part, PreTrainedModel))
    text = config.get_text_config()
    parameters: dict[str, Any] = getattr(text, "rope_parameters", None) or {}
    limits: list[tuple[int, bool]] = []
    for rope in (parameters, *parameters.values()):  # of the model, or of each kind of its layers
        kind = str(rope.get("rope_type")) if isinstance(rope, dict) else ""
        if kind == "longrope":
            limits.append((rope["original_max_position_embeddings"], False))
        elif "dynamic" in kind:
            limits.append((text.max_position_embeddings, True))

    def class_of(length: int) -> tuple[int, ...]:
        return tuple(max(length, most) if by_length else int(length > most) for most, by_length in limits)

    return class_of


def forget_longer_texts(model: nn.Module) -> None:
    """Lets a `dynamic` rotary embedding in *model* compute the frequencies for each pass: by itself it keeps those
    of the longest text so far for all shorter texts beyond the original length."""
    for part in model.modules():
        if "dynamic" in str(getattr(part, "rope_type", "")):
            part.register_forward_pre_hook(_restore)


def _restore(rotary: Any, _inputs: Any) -> None:
    if rotary.max_seq_len_cached > rotary.original_max_seq_len:
        rotary.max_seq_len_cached = rotary.original_max_seq_len
        rotary.inv_freq = rotary.original_inv_freq.to(rotary.inv_freq.device)
