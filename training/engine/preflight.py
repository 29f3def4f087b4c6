"""Checks from its configuration that a checkpoint can be trained, before hours of rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from envs.core.errors import BadInput
from training.engine.checkpoints import lora_config, read_config
from training.engine.critic_model import Critic
from training.engine.language_model import hidden_width
from training.engine.packed_model import accept_packed
from training.engine.settings import Compute


def check_trainable(folder: Path, compute: Compute) -> None:
    """Builds actor and critic of the checkpoint in *folder* as stages do, without weights.

    Raises BadInput in one line where transformers has no such model, its layers cannot process packed sequences, its
    configuration has no width for a critic's head, or no layer has a name in `compute.lora.targets`.
    """
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoModel, AutoModelForCausalLM

    config = read_config(folder)
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise BadInput(f"{str(folder)!r}: transformers has no causal language model of type {config.model_type}")
    try:
        with torch.device("meta"):
            policy: Any = AutoModelForCausalLM.from_config(config)
            trunk: Any = AutoModel.from_config(config)
            Critic(trunk, hidden_width(config))
        for model in (policy, trunk):
            accept_packed(model)
            if compute.lora is not None or compute.shared_base:
                _check_targets(model, compute)
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise BadInput(f"{str(folder)!r} cannot be trained: {reason}") from error


def _check_targets(model: Any, compute: Compute) -> None:
    targets = compute.needed_lora.targets
    decoder = model.get_decoder()
    names = {name.rpartition(".")[2] for name, part in decoder.named_modules() if isinstance(part, nn.Linear)}
    if not names & set(targets):
        raise BadInput(
            f"compute.lora.targets: the model has none of {', '.join(targets)}, but {', '.join(sorted(names))}"
        )
    lora_config(compute.needed_lora, model)
