"""Attention along the branches of a pack, so that a pack costs what its tree costs.

transformers keeps packed texts apart by a mask of the whole pack, and so pays for its length squared: sixteen texts of
a thousand tokens cost sixteen times what they do alone. Here the tokens of each branch attend to what stands before
them in their texts and to nothing else; the rest of the network still sees one long sequence.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from envs.errors import BadInput
from training.data.prefix_tree import Path

IN_TREES = "in_trees"
"""The name under which transformers knows this attention. It has no entry among the masks: none is made for it."""

_TAKEN = {"full_attention", "sliding_attention"}


def attend_in_trees(model: Any) -> None:
    """From now on *model* takes packs alone, with `branches`. Raises BadInput where its layers mix tokens in other ways
    (in chunks, by recurrence, by convolution): texts of a pack would see each other."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or _TAKEN)
    if getattr(config, "attention_chunk_size", None):
        kinds.add("chunked_attention")
    if not model._supports_attention_backend:
        kinds.add("an attention of its own")
    if others := sorted(kinds - _TAKEN):
        raise BadInput(
            f"{type(model).__name__} cannot be trained in packs, its layers have {', '.join(others)}: "
            "take a model whose layers attend to all that went before, or to a window of it"
        )
    model.set_attn_implementation(IN_TREES)


def _attention_in_trees(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    branches: tuple[tuple[int, ...], tuple[Path, ...]] | None = None,
    sliding_window: int | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """*query*: (1, heads, L, width of a head), *key* and *value* alike; *branches*: lengths and paths of
    :class:`training.data.packing.Packed`. Returns (1, L, heads, width of a head). Raises ValueError without branches,
    and with a mask."""
    if branches is None or attention_mask is not None:
        raise ValueError("this model was loaded for packs: it takes branches and no attention_mask")
    options["is_causal"] = True
    lengths, paths = branches
    queries, keys, values = (tensor.split(lengths, dim=2) for tensor in (query, key, value))
    found: list[Tensor] = []
    for own, path in zip(queries, paths, strict=True):
        seen, told = (torch.cat([parts[number] for number in path], dim=2) for parts in (keys, values))
        mask = _mask(own.shape[2], seen.shape[2], sliding_window, query.device)
        found.append(sdpa_attention_forward(module, own, seen, told, mask, **options)[0])
    return torch.cat(found, dim=1), None


def _mask(own: int, seen: int, window: int | None, device: torch.device) -> Tensor | None:
    """Which of *seen* tokens the last *own* of them see, (1, 1, own, seen): none that comes later, and no more than
    *window*. None: all that went before, where `is_causal` says the same."""
    longer = window is not None and seen > window
    if own in (1, seen) and not longer:
        return None
    mask = torch.ones(1, 1, own, seen, dtype=torch.bool, device=device).tril(seen - own)
    return mask.triu(seen - own + 1 - window) if window is not None and longer else mask


AttentionInterface.register(IN_TREES, _attention_in_trees)
