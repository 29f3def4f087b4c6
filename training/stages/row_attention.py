"""Attention within each row of a pack, so that a pack costs what its rows cost.

transformers keeps packed rows apart by a mask of the whole pack, and so pays for its length squared: sixteen rows of a
thousand tokens cost sixteen times what they do alone. Here every row is a causal attention of its own, without a mask;
the rest of the network still sees one long sequence.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

IN_ROWS = "in_rows"
"""The name under which transformers knows this attention. It has no entry among the masks: none is made for it."""

_WITHIN_ROWS = {"full_attention", "sliding_attention"}


def attend_in_rows(model: Any) -> None:
    """From now on *model* takes packs alone, with `row_lengths`; one whose layers also mix tokens in other ways is left
    as it is, and its packs cost their length squared."""
    config = model.config.get_text_config()
    chunked = getattr(config, "attention_chunk_size", None)
    if not chunked and set(getattr(config, "layer_types", None) or _WITHIN_ROWS) <= _WITHIN_ROWS:
        model.set_attn_implementation(IN_ROWS)


def _attention_in_rows(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    row_lengths: tuple[int, ...] | None = None,
    sliding_window: int | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """*query*: (1, heads, L, width of a head), *key* and *value* alike; the `row_lengths` add up to L. Returns
    (1, L, heads, width of a head). Raises ValueError without rows, and with a mask."""
    if row_lengths is None or attention_mask is not None:
        raise ValueError("this model was loaded for packs: it takes row_lengths and no attention_mask")
    rows = zip(*(tensor.split(row_lengths, dim=2) for tensor in (query, key, value)), strict=True)
    options["is_causal"] = True
    found = [sdpa_attention_forward(module, q, k, v, _window(q, sliding_window), **options)[0] for q, k, v in rows]
    return torch.cat(found, dim=1), None


def _window(query: Tensor, width: int | None) -> Tensor | None:
    """What a row's tokens see, (1, 1, L, L), where it is longer than the window; without one, all that went before."""
    length = query.shape[2]
    if width is None or length <= width:
        return None
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=query.device).tril().triu(1 - width)


AttentionInterface.register(IN_ROWS, _attention_in_rows)
