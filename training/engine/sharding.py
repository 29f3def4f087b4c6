"""Training in several processes: FSDP 2 shards the weights, DeepSpeed's ZeRO 1 and 2 optimizer states and gradients.

The launcher selects the way: `accelerate launch --use_fsdp --fsdp_version 2 ...`, or
`accelerate launch --use_deepspeed --zero_stage 2 ...`. Otherwise each process has the full model (DDP).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from accelerate.utils import DistributedType
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from transformers import Trainer

from envs.core.errors import BadInput

REDUCE_BUCKET: Final = 500_000_000
"""Number of gradients that DeepSpeed sends at once by default. It allocates a buffer for them in every step."""

ZERO_3: Final = "DeepSpeed's ZeRO 3 is not supported: use --zero_stage 2, or shard the weights with FSDP 2"


def settle_sharding(trainer: Trainer) -> None:
    """Keeps weights in float32, whatever shards them, and autocast as without sharding; call it before training. Raises
    BadInput for sharding that is not supported: FSDP 1 and ZeRO 3."""
    accelerator: Any = trainer.accelerator
    if accelerator.distributed_type == DistributedType.DEEPSPEED:
        _settle_deepspeed(accelerator, trainer.model, bf16=trainer.args.bf16)
    elif accelerator.distributed_type == DistributedType.FSDP:
        if not accelerator.is_fsdp2:
            raise BadInput("a stage's weights are sharded by FSDP 2: launch it with --fsdp_version 2")
        # Mixed precision would cast the weights, and references were scored in float32.
        accelerator.state.fsdp_plugin.mixed_precision_policy = None


def _settle_deepspeed(accelerator: Any, model: Any, *, bf16: bool) -> None:
    """DeepSpeed's own `bf16` would cast the weights; its engine ends an autocast that its configuration does not
    have. Its buffer of gradients is no larger than all gradients, which are few with adapters."""
    config = accelerator.state.deepspeed_plugin.deepspeed_config
    zero = config["zero_optimization"]
    if zero["stage"] == 3:
        raise BadInput(ZERO_3)
    trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    zero.setdefault("reduce_bucket_size", min(trained, REDUCE_BUCKET))
    config["bf16"] = {"enabled": False}
    config["torch_autocast"] = {"enabled": bf16, "dtype": "bfloat16", "lower_precision_safe_modules": []}
    accelerator.native_amp = bf16


def weights_are_sharded() -> bool:
    """Whether this process was launched with FSDP."""
    return os.environ.get("ACCELERATE_USE_FSDP", "").lower() in ("true", "1", "yes", "on")


def accumulate_gradients(accelerator: Any, *, last: bool) -> None:
    """Tells DeepSpeed whether the next backward pass is the *last* before the optimizer step, which its engine makes in
    that pass. Other trainers make the step themselves."""
    if accelerator.distributed_type == DistributedType.DEEPSPEED:
        accelerator.gradient_state._set_sync_gradients(last)


def whole_model(trainer: Trainer, build: Callable[[], nn.Module]) -> nn.Module | None:
    """The trained model with all of its weights; None in processes that do not write it. All processes must call this
    together. *build* creates the untrained model, into which sharded weights (FSDP) are loaded."""
    accelerator: Any = trainer.accelerator
    if accelerator.distributed_type != DistributedType.FSDP:
        return accelerator.unwrap_model(trainer.model) if trainer.is_world_process_zero() else None
    weights = accelerator.get_state_dict(trainer.model)  # each process sends its part
    if not trainer.is_world_process_zero():
        return None
    model = build()
    model.load_state_dict(weights)
    return model


def load_whole(model: nn.Module, weights: dict[str, Any]) -> None:
    """Loads complete *weights* into *model*, whose own weights may be sharded."""
    set_model_state_dict(model, weights, options=StateDictOptions(full_state_dict=True, strict=True))
