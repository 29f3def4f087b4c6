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
MOST_TOKENS: Final = 16_384
"""Tokens kept over all entries; the least recently used entry is dropped first."""

Layers = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer: [1, heads, tokens, head size]."""


@dataclass(frozen=True, slots=True)
class _Entry:
    ids: tuple[int, ...]
    layers: Layers


class PrefixCache:
    """The computed prefixes of one model, most recently used first. Used from one thread at a time."""

    def __init__(self, model: Any, most_tokens: int = MOST_TOKENS) -> None:
        self._model = model
        self._most_tokens = most_tokens
        self._entries: list[_Entry] = []
        self._usable = _keeps_all_tokens(model)

    def start(self, prompts: Sequence[tuple[int, ...]]) -> tuple[int, Any]:
        """Returns (n, cache): the first *n* tokens of all *prompts* are in *cache*, which has a row for each.

        At least one token of each prompt is left to compute. (0, None) without a prefix that is worth it.
        """
        if not self._usable:
            return 0, None
        shared = common_prefix(prompts)
        shared = shared[: min(len(prompt) for prompt in prompts) - 1]
        entry, known = self._longest(shared)
        if len(prompts) > 1 and len(shared) >= SHORTEST and known < len(shared):
            entry, known = self._extended(shared, entry, known), len(shared)
        if entry is None or known < SHORTEST:
            return 0, None
        self._entries.remove(entry)
        self._entries.insert(0, entry)
        return known, _cache_with(entry.layers, known, len(prompts))

    def keep(self, prompt: tuple[int, ...], cache: Any) -> None:
        """Stores the keys and values of *prompt*, the first tokens of the single row of *cache*."""
        if self._usable and len(prompt) >= SHORTEST:
            self._add(_Entry(prompt, _layers_of(cache, len(prompt))))

    def _longest(self, ids: tuple[int, ...]) -> tuple[_Entry | None, int]:
        """The entry that shares most tokens with *ids*, and how many."""
        known = [(len(common_prefix((entry.ids, ids))), entry) for entry in self._entries]
        length, entry = max(known, key=lambda pair: pair[0], default=(0, None))
        return entry, length

    def _extended(self, ids: tuple[int, ...], entry: _Entry | None, known: int) -> _Entry:
        """Computes the tokens of *ids* after the first *known* ones, and stores the result."""
        cache = _cache_with(entry.layers, known, 1) if entry is not None and known else None
        rest = torch.tensor([ids[0 if cache is None else known :]], device=self._model.device)
        out = self._model(input_ids=rest, use_cache=True, logits_to_keep=1, **cache_argument(self._model, cache))
        extended = _Entry(ids, _layers_of(cache_of(out), len(ids)))
        self._add(extended)
        return extended

    def _add(self, entry: _Entry) -> None:
        """Adds *entry* and drops entries that it contains, then the oldest beyond the limit."""
        others = [old for old in self._entries if entry.ids[: len(old.ids)] != old.ids]
        self._entries = [entry, *others]
        while sum(len(kept.ids) for kept in self._entries) > self._most_tokens and len(self._entries) > 1:
            self._entries.pop()


def common_prefix(prompts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The tokens that all *prompts* begin with."""
    first, last = min(prompts), max(prompts)
    for place, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return first[:place]
    return first[: len(last)]


def cache_argument(model: Any, cache: Any) -> dict[str, Any]:
    """The keyword argument that passes *cache* to a forward pass; empty for None.

    transformers 5.24 calls it `cache`, older versions call it `past_key_values`.
    """
    if cache is None:
        return {}
    parameters = inspect.signature(model.forward).parameters
    return {"cache" if "cache" in parameters else "past_key_values": cache}


def cache_of(out: Any) -> Any:
    """The key-value cache of a forward pass, under either name."""
    return out["cache"] if "cache" in out else out["past_key_values"]


def _keeps_all_tokens(model: Any) -> bool:
    """Whether every layer attends to all tokens: others (sliding windows, recurrent states) cannot be cut."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or ["full_attention"]
    return set(kinds) == {"full_attention"} and getattr(config, "sliding_window", None) in (None, 0, False)


def _layers_of(cache: Any, length: int) -> Layers:
    """Copies of the first *length* tokens of the first row, so that the rest of the cache is freed."""
    return [(layer.keys[:1, :, :length].clone(), layer.values[:1, :, :length].clone()) for layer in cache.layers]


def _cache_with(layers: Layers, length: int, rows: int) -> Any:
    from transformers import DynamicCache

    cache = DynamicCache()
    for index, (keys, values) in enumerate(layers):
        cache.update(
            keys[:, :, :length].expand(rows, -1, -1, -1), values[:, :, :length].expand(rows, -1, -1, -1), index
        )
    return cache
