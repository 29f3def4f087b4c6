"""Keeps the attention keys and values of earlier prompts, so that a prefix that prompts share is computed once.

Consecutive steps of an episode share the system message, the goal and often the plan; concurrent workers share at least
the system message. Reuse changes results only by rounding: a prefix gets the same keys and values in any prompt.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

SHORTEST: Final = 32
"""Shared prefixes of fewer tokens are computed again, which is as fast."""
MOST_BYTES: Final = 1 << 30
"""Memory of all entries; the least recently used entry is dropped first. A model of half a billion parameters with
grouped heads needs 25 kB for a token in float32: 43,000 tokens."""

Layers = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer: [rows, heads, tokens, head size]."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Computed tokens."""

    ids: tuple[int, ...]
    layers: Layers
    """Of one row."""

    @property
    def size(self) -> int:
        """Bytes of the keys and values."""
        return sum(tensor.nbytes for pair in self.layers for tensor in pair)


class PrefixCache:
    """The computed prefixes of one model, most recently used first. Used from one thread at a time."""

    def __init__(self, model: Any, most_bytes: int = MOST_BYTES) -> None:
        self.usable = _keeps_all_tokens(model)
        """Whether caches of the model can be cut. If not, the other methods must not be called."""
        self._most_bytes = most_bytes
        self._entries: list[Prefix] = []

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return sum(entry.size for entry in self._entries)

    def start(self, prompt: tuple[int, ...]) -> tuple[int, Any]:
        """Returns (n, cache): the first *n* tokens of *prompt* are in *cache*; (0, None) without a prefix that is worth
        it. At least one token is left to compute."""
        known, entry = max(
            ((_shared(entry.ids, prompt), entry) for entry in self._entries),
            key=lambda pair: pair[0],
            default=(0, None),
        )
        known = min(known, len(prompt) - 1)
        if entry is None or known < SHORTEST:
            return 0, None
        self._entries.remove(entry)
        self._entries.insert(0, entry)
        return known, _cache_with([(keys[:, :, :known], values[:, :, :known]) for keys, values in entry.layers])

    def keep(self, prompt: tuple[int, ...], cache: Any) -> None:
        """Stores the keys and values of *prompt*, all tokens of the single row of *cache*.

        Drops entries that it contains, then the oldest ones beyond the limit. Of a prompt beyond the limit the first
        tokens are stored.
        """
        entry = Prefix(prompt, layers_of(cache))
        stored = entry if entry.size <= self._most_bytes else _cut(entry, len(prompt) * self._most_bytes // entry.size)
        if len(stored.ids) >= SHORTEST:
            others = [old for old in self._entries if stored.ids[: len(old.ids)] != old.ids]
            self._entries = [stored, *others]
            while self.size > self._most_bytes:
                self._entries.pop()


def _cut(prefix: Prefix, length: int) -> Prefix:
    """The first *length* tokens, copied, so that the rest is freed."""
    cut = [(keys[:, :, :length].clone(), values[:, :, :length].clone()) for keys, values in prefix.layers]
    return Prefix(prefix.ids[:length], cut)


def side_by_side(blocks: Sequence[Layers]) -> Any:
    """A cache of the rows of all *blocks*, padded on the left to the longest."""
    longest = max(block[0][0].shape[2] for block in blocks)
    padded = [[_padded(tensor, longest) for pair in block for tensor in pair] for block in blocks]
    stacked = [torch.cat(column) for column in zip(*padded, strict=True)]
    return _cache_with(list(zip(stacked[::2], stacked[1::2], strict=True)))


def rows_of(cache: Any, rows: Sequence[int], first: int) -> Any:
    """A cache of some *rows* of *cache*, without its tokens before *first*."""
    index = torch.tensor(rows, device=cache.layers[0].keys.device)
    return _cache_with([(keys[index, :, first:], values[index, :, first:]) for keys, values in layers_of(cache)])


def layers_of(cache: Any) -> Layers:
    return [(layer.keys, layer.values) for layer in cache.layers]


def _padded(tensor: Tensor, length: int) -> Tensor:
    return torch.nn.functional.pad(tensor, (0, 0, length - tensor.shape[2], 0))


def _shared(ids: tuple[int, ...], other: tuple[int, ...]) -> int:
    """How many tokens both begin with: a binary search, because comparing slices is fast."""
    low, high = 0, min(len(ids), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if ids[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def cache_argument(model: Any, cache: Any) -> dict[str, Any]:
    """The keyword argument that passes *cache* to a forward pass; empty for None.

    transformers 5.24 calls it `cache`, older versions call it `past_key_values`.
    """
    if cache is None:
        return {}
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model  # PEFT's forward passes all on
    parameters = inspect.signature(inner.forward).parameters
    return {"cache" if "cache" in parameters else "past_key_values": cache}


def cache_of(out: Any) -> Any:
    """The key-value cache of a forward pass, under either name."""
    return out["cache"] if "cache" in out else out["past_key_values"]


def _keeps_all_tokens(model: Any) -> bool:
    """Whether every layer attends to all tokens: others (sliding windows, recurrent states) cannot be cut."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or ["full_attention"]
    return set(kinds) == {"full_attention"} and getattr(config, "sliding_window", None) in (None, 0, False)


def _cache_with(layers: Layers) -> Any:
    """A cache of *layers*; what is appended to it leaves them as they are."""
    from transformers import DynamicCache

    cache = DynamicCache()
    for index, (keys, values) in enumerate(layers):
        cache.update(keys, values, index)
    return cache
