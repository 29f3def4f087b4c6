"""Lets a model take packed sequences and computes the last layer only where its output is read.

The actor's loss reads the tokens that predict completions; a critic reads one token per row. Up to the last layer every
token is needed, because others attend to it. In the last layer only keys and values are needed everywhere; queries and
feed-forward are computed at the positions that are read. This saves a fifth of the cost of a network of four layers, a
twenty-fifth of one of eighteen.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from training.engine.rotary_lengths import forget_longer_texts
from training.engine.tree_attention import IN_TREES, READ_AT, use_tree_attention


def precision(device: torch.device, *, bf16: bool) -> torch.autocast:
    """The autocast of stages and of the scoring pass between them: float32 weights, with *bf16* matrix products in
    bfloat16."""
    return torch.autocast(device.type, torch.bfloat16, enabled=bf16)


def accept_packed(model: Any, *, checked: bool = False) -> None:
    """Prepares *model*, causal or a trunk, for the arguments of :meth:`training.data.packing.PackedSequence.read_at`.
    *checked*: see `use_tree_attention`. Raises UnpackableLayers where its layers cannot separate the texts of a packed
    sequence."""
    use_tree_attention(model, checked=checked)
    forget_longer_texts(model)
    layers: Any = getattr(model.get_decoder(), "layers", None)
    if isinstance(layers, nn.ModuleList) and len(layers):
        parts = dict(layers[-1].named_modules())
        for name in _BY_TOKEN & parts.keys():
            _Narrowed(layers[-1], parts[name])


_BY_TOKEN = {"mlp", "self_attn.q_proj", "self_attn.o_proj"}
"""Parts of a layer that process each token alone."""


def require_packed_support(model: nn.Module) -> None:
    """Raises ValueError where *model*, or the model in it, was not prepared for packed sequences: its output would be
    wrong."""
    inner: list[Any] = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    if not inner or any(part.config._attn_implementation != IN_TREES for part in inner):
        raise ValueError(f"{type(model).__name__} would misread packed sequences: call accept_packed(model) first")


class _Narrowed:
    """Computes a part of a *layer* only at the positions of the argument `read_at`; its output is 0 elsewhere."""

    def __init__(self, layer: nn.Module, part: nn.Module) -> None:
        self._read_at: Tensor | None = None
        self._length = 0
        layer.register_forward_pre_hook(self._note_positions, with_kwargs=True)
        part.register_forward_pre_hook(self._narrow)
        part.register_forward_hook(self._widen)

    def _note_positions(self, _layer: nn.Module, _inputs: Any, options: dict[str, Any]) -> None:
        self._read_at = options.get(READ_AT)

    def _narrow(self, _part: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        """(1, L, D) to (1, R, D)."""
        if self._read_at is None:
            return None
        self._length = inputs[0].shape[1]
        return (inputs[0][:, self._read_at], *inputs[1:])

    def _widen(self, _part: nn.Module, _inputs: Any, output: Tensor) -> Tensor | None:
        """(1, R, D) to (1, L, D)."""
        if self._read_at is None:
            return None
        full = torch.zeros(1, self._length, output.shape[-1], dtype=output.dtype, device=output.device)
        return full.index_copy(1, self._read_at, output)
