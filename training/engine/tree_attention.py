"""Prefix-tree attention: computes attention along the branches of a packed sequence only.

transformers separates packed texts by a mask over the full sequence, which costs its length squared: sixteen texts of a
thousand tokens cost sixteen times as much as alone. Here the tokens of each branch attend only to the tokens before
them in their texts. The rest of the network still processes one long sequence.
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
"""Name of this attention in transformers' registry. It has no entry among the masks, so no mask is built for it."""

READ_AT = "read_at"
"""Model argument: the positions whose hidden states are read, (R,), sorted; without it all positions are."""

_TAKEN = {"full_attention", "sliding_attention"}


def use_tree_attention(model: Any) -> None:
    """Switches *model* to prefix-tree attention: it then needs `branches`. Raises BadInput as `check_layers` does."""
    check_layers(model.config, supported=model._supports_attention_backend)
    model.set_attn_implementation(IN_TREES)


def check_layers(config: Any, *, supported: bool = True) -> None:
    """Raises BadInput where a model of *config* has layers other than full causal or sliding-window attention (chunked
    attention, recurrence, convolution): packed texts would attend to each other. *supported*: its class uses
    transformers' attention interface."""
    text = config.get_text_config()
    kinds = set(getattr(text, "layer_types", None) or _TAKEN)
    if getattr(text, "attention_chunk_size", None):
        kinds.add("chunked_attention")
    if not supported:
        kinds.add("an attention of its own")
    if others := sorted(kinds - _TAKEN):
        raise BadInput(
            f"a model of type {config.model_type} cannot be trained on packed sequences, its layers have "
            f"{', '.join(others)}: use one with full or sliding-window attention in all layers"
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
    :class:`training.data.packing.PackedSequence`. Returns (1, L, heads, width of a head). Raises ValueError without
    branches, and with a mask."""
    if branches is None or attention_mask is not None:
        raise ValueError("this model was loaded for packed sequences: it needs branches and no attention_mask")
    options["is_causal"] = True
    lengths, paths = branches
    read = _places(lengths, options.pop(READ_AT, None) if _is_last(module) else None)
    queries, keys, values = (tensor.split(lengths, dim=2) for tensor in (query, key, value))
    outputs: list[Tensor] = []
    for own, path, places in zip(queries, paths, read, strict=True):
        length = own.shape[2]
        if not places:
            outputs.append(own.new_zeros(own.shape).transpose(1, 2))
            continue
        path_keys, path_values = _along(keys, path), _along(values, path)
        seen = path_keys.shape[2]
        mask = _mask([seen - length + place for place in places], seen, sliding_window, own.device)
        selected = own if len(places) == length else own[:, :, places]
        output: Tensor = sdpa_attention_forward(module, selected, path_keys, path_values, mask, **options)[0]
        outputs.append(output if len(places) == length else _spread(output, places, length))
    return torch.cat(outputs, dim=1), None


def _along(branches: Sequence[Tensor], path: Path) -> Tensor:
    """Concatenates the tensors on *path*, (1, heads, S, width); a single branch is not copied."""
    parts = [branches[number] for number in path]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def _is_last(module: Any) -> bool:
    """Whether *module* belongs to the last layer, whose output no token attends to."""
    return getattr(module, "layer_idx", None) == module.config.num_hidden_layers - 1


def _places(lengths: Sequence[int], read_at: Tensor | None) -> Iterator[Sequence[int]]:
    """The positions to read in each branch, relative to its start; all positions without *read_at*, which is sorted."""
    read = None if read_at is None else read_at.tolist()
    end = 0
    for length in lengths:
        start, end = end, end + length
        if read is None:
            yield range(length)
        else:
            yield [place - start for place in read[bisect_left(read, start) : bisect_left(read, end)]]


def _spread(output: Tensor, places: Sequence[int], length: int) -> Tensor:
    """Scatters *output*, (1, R, heads, width), to *places* of *length* tokens, with zeros elsewhere."""
    full = output.new_zeros(1, length, *output.shape[2:])
    return full.index_copy(1, torch.tensor(places, device=output.device), output)


def _mask(places: Sequence[int], seen: int, window: int | None, device: torch.device) -> Tensor | None:
    """The attention mask, (1, 1, R, seen), of the queries at *places* among *seen* tokens: earlier tokens within
    *window* only. None where `is_causal` gives the same mask."""
    longer = window is not None and seen > window
    if not longer and (len(places) == seen or list(places) == [seen - 1]):
        return None
    rows, columns = torch.tensor(places, device=device)[:, None], torch.arange(seen, device=device)
    mask = columns <= rows
    return (mask & (columns > rows - window) if window is not None else mask)[None, None]


AttentionInterface.register(IN_TREES, _attention_in_trees)
