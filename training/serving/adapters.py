"""Checks whether vLLM can serve a LoRA adapter on its base, or whether it must be merged.

vLLM reads `adapter_config.json` and rejects unsupported adapters when the server starts or at a request. The same rules
(vLLM 0.32, `lora/peft_helper.py`) are applied here before an export is written, so that no phase fails later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from envs.core.errors import BadInput

SERVER_RANKS: Final = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Allowed values of `--max-lora-rank`. An adapter can have any rank up to it."""

_UNSUPPORTED: Final[Mapping[str, str]] = {
    "modules_to_save": "whole layers saved beside it",
    "use_dora": "DoRA",
    "lora_bias": "a bias",
    "layer_replication": "replicated layers",
    "use_qalora": "QALoRA",
    "use_bdlora": "block-diagonal LoRA",
    "alora_invocation_tokens": "activated LoRA",
    "trainable_token_indices": "trained tokens",
    "target_parameters": "adapted parameters that are no layer's weight",
}
"""Unsupported keys of the adapter's configuration, and their meaning."""

_PLAIN_INITS: Final = frozenset({"gaussian", "eva", "orthogonal", "mica", "lora_ga"})
"""Initialisations that keep the base's weights. Others (PiSSA, OLoRA, …) change them."""


def check_servable(config: Mapping[str, Any], tensors: Iterable[str]) -> int:
    """Returns the adapter's largest rank. Raises BadInput, in one line, if vLLM would reject it unmerged.

    *config* is its `adapter_config.json`; *tensors* are the tensor names in its weights file.
    """
    kind = str(config.get("peft_type"))
    if kind.upper() != "LORA":
        raise _not_servable(f"it is of the type {kind}, not LoRA")
    for key, meaning in _UNSUPPORTED.items():
        if config.get(key):
            raise _not_servable(f"it has {meaning} ({key})")
    if config.get("bias", "none") != "none":
        raise _not_servable(f"it trained biases (bias={config['bias']!r})")
    init = config.get("init_lora_weights", True)
    if isinstance(init, str) and init.lower() not in _PLAIN_INITS:
        raise _not_servable(f"its initialisation {init!r} changes the base's weights")
    odd = next((name for name in tensors if not name.endswith((".lora_A.weight", ".lora_B.weight"))), None)
    if odd is not None:
        raise _not_servable(f"its tensor {odd!r} is not a LoRA matrix of a linear layer")
    rank = max(int(config["r"]), *(int(rank) for rank in (config.get("rank_pattern") or {"": 0}).values()))
    server_rank(rank)
    return rank


def server_rank(rank: int) -> int:
    """Returns the smallest `--max-lora-rank` for *rank*. Raises BadInput above the largest."""
    fitting = next((limit for limit in SERVER_RANKS if rank <= limit), None)
    if fitting is None:
        raise _not_servable(f"its rank {rank} is above {SERVER_RANKS[-1]}")
    return fitting


def _not_servable(reason: str) -> BadInput:
    return BadInput(f"vLLM cannot serve this adapter beside its base: {reason}; export it merged")
