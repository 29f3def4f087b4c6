"""Attention along the branches of a pack, so that a pack costs what its tree costs.

transformers keeps packed texts apart by a mask of the whole pack, and so pays for its length squared: sixteen texts of
a thousand tokens cost sixteen times what they do alone. Here the tokens of each branch attend to what stands before
them in their texts and to nothing else; the rest of the network still sees one long sequence.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from envs.core.errors import BadInput
from training.data.prefix_tree import Path

IN_TREES = "in_trees"
"""The name under which transformers knows this attention. It has no entry among the masks: none is made for it."""

READ_AT = "read_at"
"""The argument of a model that names the positions whose hidden states are read, (R,), sorted; without it all are."""

_TAKEN = {"full_attention", "sliding_attention"}


def use_tree_attention(model: Any) -> None:
    """From now on *model* takes packs alone, with `branches`. Raises BadInput as `check_layers` does."""
    check_layers(model.config, supported=model._supports_attention_backend)
    model.set_attn_implementation(IN_TREES)


def check_layers(config: Any, *, supported: bool = True) -> None:
    """Raises BadInput where a model of *config* mixes tokens in other ways than attention to all that went before or to
    a window of it (in chunks, by recurrence, by convolution): texts of a pack would see each other. *supported*: its
    class leaves attention to transformers."""
    text = config.get_text_config()
    kinds = set(getattr(text, "layer_types", None) or _TAKEN)
    if getattr(text, "attention_chunk_size", None):
        kinds.add("chunked_attention")
    if not supported:
        kinds.add("an attention of its own")
    if others := sorted(kinds - _TAKEN):
        raise BadInput(
            f"a model of type {config.model_type} cannot be trained in packs, its layers have {', '.join(others)}: "
            "take one whose layers attend to all that went before, or to a window of it"
        )


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
    :class:`training.data.packing.PackedSequence`. Returns (1, L, heads, width of a head). Raises ValueError without branches,
    and with a mask."""
    if branches is None or attention_mask is not None:
        raise ValueError("this model was loaded for packs: it takes branches and no attention_mask")
    options["is_causal"] = True
    lengths, paths = branches
    read = _places(lengths, options.pop(READ_AT, None) if _is_last(module) else None)
    queries, keys, values = (tensor.split(lengths, dim=2) for tensor in (query, key, value))
    found: list[Tensor] = []
    for own, path, places in zip(queries, paths, read, strict=True):
        length = own.shape[2]
        if not places:
            found.append(own.new_zeros(own.shape).transpose(1, 2))
            continue
        seen, told = _along(keys, path), _along(values, path)
        mask = _mask([seen.shape[2] - length + place for place in places], seen.shape[2], sliding_window, own.device)
        asking = own if len(places) == length else own[:, :, places]
        said: Tensor = sdpa_attention_forward(module, asking, seen, told, mask, **options)[0]
        found.append(said if len(places) == length else _spread(said, places, length))
    return torch.cat(found, dim=1), None


def _along(branches: Sequence[Tensor], path: Path) -> Tensor:
    """What stands on *path*, (1, heads, S, width); a branch that grows from none is not copied."""
    parts = [branches[number] for number in path]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def _is_last(module: Any) -> bool:
    """Whether what *module* says is read and not attended to."""
    return getattr(module, "layer_idx", None) == module.config.num_hidden_layers - 1


def _places(lengths: Sequence[int], read_at: Tensor | None) -> Iterator[Sequence[int]]:
    """Of each branch the tokens that are read, from its first; all without *read_at*, which is sorted."""
    read = None if read_at is None else read_at.tolist()
    end = 0
    for length in lengths:
        start, end = end, end + length
        if read is None:
            yield range(length)
        else:
            yield [place - start for place in read[bisect_left(read, start) : bisect_left(read, end)]]


def _spread(said: Tensor, places: Sequence[int], length: int) -> Tensor:
    """*said*, (1, R, heads, width), at its *places* of *length* tokens, and zeros elsewhere."""
    whole = said.new_zeros(1, length, *said.shape[2:])
    return whole.index_copy(1, torch.tensor(places, device=said.device), said)


def _mask(places: Sequence[int], seen: int, window: int | None, device: torch.device) -> Tensor | None:
    """Which of *seen* tokens those at *places* of them see, (1, 1, R, seen): none that comes later, and no more than
    *window*. None: all that went before, where `is_causal` says the same."""
    longer = window is not None and seen > window
    if not longer and (len(places) == seen or list(places) == [seen - 1]):
        return None
    rows, columns = torch.tensor(places, device=device)[:, None], torch.arange(seen, device=device)
    mask = columns <= rows
    return (mask & (columns > rows - window) if window is not None else mask)[None, None]


AttentionInterface.register(IN_TREES, _attention_in_trees)
