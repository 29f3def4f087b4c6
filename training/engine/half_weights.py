"""Holds frozen weights in bfloat16 where the autocast multiplies in bfloat16 anyway: half the memory, equal numbers.

Under a bfloat16 autocast a linear layer casts its float32 weight to bfloat16 in every pass. A frozen weight can be cast
once: outputs and gradients are the same to the bit. Weights that are trained stay in float32, because an update of
1e-6 of a weight is lost in bfloat16; so do norms and embeddings, which the autocast computes in float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from training.engine.settings import Compute
from training.engine.sharding import weights_are_sharded


def hold_frozen_in_bfloat16(model: nn.Module, compute: Compute, *, frozen: bool = False) -> nn.Module:
    """Casts the frozen linear layers of *model*, in place, if *compute* has a bfloat16 autocast; returns *model*.

    *frozen*: no weight of *model* will be trained, whatever `requires_grad` says, so all linear layers are cast.
    Sharded weights (FSDP) stay as they are, because a sharding unit has one type.
    """
    if not compute.bf16 or (not frozen and weights_are_sharded()):
        return model
    embeddings = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    for part in model.modules():
        if isinstance(part, nn.Linear) and id(part.weight) not in embeddings:
            for weight in part.parameters(recurse=False):
                if frozen or not weight.requires_grad:
                    weight.data = weight.data.to(torch.bfloat16)
    return model


def is_held_in_bfloat16(model: nn.Module) -> bool:
    """Whether `hold_frozen_in_bfloat16` has cast a weight of *model*."""
    return any(weight.dtype == torch.bfloat16 for weight in model.parameters())


def copy_trained_weights(trained: Any, exact: Any) -> None:
    """Copies the weights of *trained* that have gradients to *exact*, which has the same names and float32 weights."""
    weights = dict(exact.named_parameters())
    with torch.no_grad():
        for name, weight in trained.named_parameters():
            if weight.requires_grad:
                weights[name].copy_(weight)
