"""Holds frozen weights in bfloat16 where the autocast multiplies in bfloat16 anyway: half the memory, equal numbers.

Under a bfloat16 autocast a linear layer casts its float32 weight to bfloat16 in every pass. A frozen weight can be cast
once, while its checkpoint is read (:func:`loading_half`) or later: outputs and gradients are the same to the bit.
Weights that are trained stay in float32, because an update of 1e-6 of a weight is lost in bfloat16; so do norms and
embeddings, which the autocast computes in float32.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from training.engine.replaced_attributes import replaced
from training.engine.settings import Compute
from training.engine.sharding import weights_are_sharded


def hold_frozen_in_bfloat16(model: nn.Module, compute: Compute, *, frozen: bool = False) -> nn.Module:
    """Casts the frozen linear layers of *model*, in place, if *compute* has a bfloat16 autocast; returns *model*.

    *frozen*: no weight of *model* will be trained, whatever `requires_grad` says, so all linear layers are cast.
    Sharded weights (FSDP) stay as they are, because a sharding unit has one type.
    """
    if not compute.bf16 or (not frozen and weights_are_sharded()):
        return model
    for part in _linear_layers(model):
        for weight in part.parameters(recurse=False):
            if frozen or not weight.requires_grad:
                weight.data = weight.data.to(torch.bfloat16)
    return model


@contextmanager
def loading_half(*, half: bool) -> Generator[None]:
    """With *half*, `from_pretrained` in the body reads linear layers in bfloat16, the rest in the type that it is asked
    for. The weights are those of a float32 model after :func:`hold_frozen_in_bfloat16` with *frozen*, and main memory
    never holds them in float32."""
    if not half:
        yield
        return
    library: Any = PreTrainedModel
    ask = library._get_dtype_plan

    def cast_first(model: Any, dtype: Any) -> Any:
        """transformers calls this before it reads any weight; it reads each in the type of the empty one."""
        tied = model.get_output_embeddings() if model.config.get_text_config().tie_word_embeddings else None
        for part in _linear_layers(model):
            for weight in part.parameters(recurse=False) if part is not tied else ():
                weight.data = weight.data.to(torch.bfloat16)
        return ask(model, dtype)

    with replaced(PreTrainedModel, "_get_dtype_plan", cast_first):
        yield


def reads_half(compute: Compute) -> bool:
    """Whether a stage with *compute* trains adapters on weights that :func:`hold_frozen_in_bfloat16` casts, so that
    they may be read in bfloat16."""
    return compute.bf16 and compute.lora is not None and not weights_are_sharded()


def _linear_layers(model: nn.Module) -> Iterator[nn.Linear]:
    """The linear layers of *model* that are no embeddings."""
    embeddings = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    for part in model.modules():
        if isinstance(part, nn.Linear) and id(part.weight) not in embeddings:
            yield part


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
