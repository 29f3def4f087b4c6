"""Limits the checkpoints of a stage to what resuming needs: the weights that are trained."""

from __future__ import annotations

from typing import Any

from torch import nn


def store_trained_weights_only(module: nn.Module) -> None:
    """Limits a stage's checkpoints to weights with gradients, and accepts checkpoints without the base on loading."""

    def learned(prefix: str = "") -> set[str]:
        return {prefix + name for name, weight in module.named_parameters() if weight.requires_grad}

    def cut(_module: nn.Module, state: dict[str, Any], prefix: str, _metadata: Any) -> None:
        for name in state.keys() - learned(prefix):
            del state[name]

    def forgive(_module: nn.Module, incompatible: Any) -> None:
        incompatible.missing_keys[:] = [name for name in incompatible.missing_keys if name in learned()]

    module.register_state_dict_post_hook(cut)
    module.register_load_state_dict_post_hook(forgive)
