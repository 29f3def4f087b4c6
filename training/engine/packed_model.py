"""A model that takes packs, and computes of them what is read.

The actor's loss reads the tokens before its actions, a critic one token a row. Up to the last layer every token is
needed, because others attend to it; of the last layer its keys and values alone. The rest of it, feed-forward and what
its tokens ask of others, is computed where it is read. That is a fifth of what a network of four layers costs, a
twenty-fifth of one of eighteen.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from training.engine.tree_attention import IN_TREES, READ_AT, use_tree_attention


def precision(device: torch.device, *, bf16: bool) -> torch.autocast:
    """The one in which a model is asked, by stages and by the pass that scores between them: float32 weights, and with
    *bf16* products in bfloat16."""
    return torch.autocast(device.type, torch.bfloat16, enabled=bf16)


def accept_packed(model: Any) -> None:
    """From now on *model*, causal or a trunk, is called with :meth:`training.data.packing.PackedSequence.read_at`. Raises
    BadInput where its layers cannot keep the texts of a pack apart."""
    use_tree_attention(model)
    layers: Any = getattr(model.get_decoder(), "layers", None)
    if isinstance(layers, nn.ModuleList) and len(layers):
        parts = dict(layers[-1].named_modules())
        for name in _BY_TOKEN & parts.keys():
            _Narrowed(layers[-1], parts[name])


_BY_TOKEN = {"mlp", "self_attn.q_proj", "self_attn.o_proj"}
"""Parts of a layer in which tokens do not see each other."""


def require_packed_support(model: nn.Module) -> None:
    """Raises ValueError where *model*, or the model in it, does not take packs: it would say something of them."""
    inner: list[Any] = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    if not inner or any(part.config._attn_implementation != IN_TREES for part in inner):
        raise ValueError(f"{type(model).__name__} would misread packs: take_packs(model) comes first")


class _Narrowed:
    """A part of a *layer*, narrowed to the positions that the layer was told are read; elsewhere it says 0."""

    def __init__(self, layer: nn.Module, part: nn.Module) -> None:
        self._read_at: Tensor | None = None
        self._length = 0
        layer.register_forward_pre_hook(self._hear, with_kwargs=True)
        part.register_forward_pre_hook(self._narrow)
        part.register_forward_hook(self._widen)

    def _hear(self, _layer: nn.Module, _given: Any, options: dict[str, Any]) -> None:
        self._read_at = options.get(READ_AT)

    def _narrow(self, _part: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        """(1, L, D) to (1, R, D)."""
        if self._read_at is None:
            return None
        self._length = given[0].shape[1]
        return (given[0][:, self._read_at], *given[1:])

    def _widen(self, _part: nn.Module, _given: Any, found: Tensor) -> Tensor | None:
        """(1, R, D) to (1, L, D)."""
        if self._read_at is None:
            return None
        whole = torch.zeros(1, self._length, found.shape[-1], dtype=found.dtype, device=found.device)
        return whole.index_copy(1, self._read_at, found)
