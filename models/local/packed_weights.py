"""Weights of linear layers in the blocked layout that oneDNN multiplies, for models in bfloat16 on the CPU.

PyTorch keeps weights row by row, and oneDNN copies them into its layout in every matrix product. For the few rows of
decoding that is a large part of the time: with packed weights an answer is written 1.3 times faster, and a prompt is
read about as fast as before (docs/results/local_speed.md). PyTorch's compiler packs weights by the same operators,
which are private.
"""

from __future__ import annotations

from typing import Any, Final, cast

import torch
from torch import Tensor, nn

ROWS: Final = 512
"""Number of rows that the layout is chosen for: a prompt's. It is as fast as any for the few rows of decoding."""


class PackedLinear(nn.Module):
    """A linear layer for inference, with its weight in oneDNN's layout. It has no parameters."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), ROWS)
        bias = cast("Tensor | None", layer.bias)
        self.bias = None if bias is None else bias.detach()

    @property
    def weight(self) -> Tensor:
        """A copy [out, in] in the usual layout, for models that read the weights of their layers."""
        return self.packed.to_dense()

    def forward(self, inputs: Tensor) -> Tensor:
        """[…, in] → […, out]."""
        return torch.ops.mkldnn._linear_pointwise(inputs, self.packed, self.bias, "none", [], "")


def pack_weights(model: nn.Module) -> int:
    """Replaces the linear layers of *model* in bfloat16 on the CPU by packed ones; returns how many.

    A layer that shares its weight, as an output layer does with the embeddings, is left: it would be held twice.
    """
    if not can_pack():
        return 0
    shared = _shared_weights(model)
    packed = 0
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is nn.Linear and _fits(layer.weight) and id(layer.weight) not in shared:
                setattr(parent, name, PackedLinear(layer))
                packed += 1
    return packed


def can_pack() -> bool:
    """Whether this build of PyTorch has the operators, and the processor multiplies bfloat16."""
    operators: Any = torch.ops.mkldnn
    names = ("_reorder_linear_weight", "_linear_pointwise", "_is_mkldnn_bf16_supported")
    return all(hasattr(operators, name) for name in names) and bool(operators._is_mkldnn_bf16_supported())


def _fits(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.dtype == torch.bfloat16


def _shared_weights(model: nn.Module) -> set[int]:
    """Weights that several modules hold, by `id`."""
    seen: set[int] = set()
    shared: set[int] = set()
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            (shared if id(parameter) in seen else seen).add(id(parameter))
    return shared
