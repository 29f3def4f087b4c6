"""The replay buffer (MiRA paper, Alg. 2): past successes of which the actor is neither too sure nor too surprised."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from envs.core.record import Record

T = TypeVar("T")

CAPACITY = 100_000
"""Trajectories that the buffer holds (§6.1)."""


class Band(Record):
    """Perplexities that are kept, ends included. The default is the paper's `[1/0.9, 1/0.5]`."""

    low: float = 1 / 0.9
    high: float = 1 / 0.5

    def holds(self, perplexity: float) -> bool:
        return self.low <= perplexity <= self.high


def perplexity(logprobs: Sequence[float]) -> float:
    """`exp(−mean log π)` over the action tokens of one step or one trajectory; at least 1.

    Raises ValueError where there is no token: nothing can be said of nothing.
    """
    if not logprobs:
        raise ValueError("a perplexity needs at least one action token")
    return math.exp(-math.fsum(logprobs) / len(logprobs))


class Kept(NamedTuple):
    """What came of a pass over the buffer, for the log."""

    chosen: int
    too_sure: int
    """Perplexity below the band: nothing to learn any more."""
    too_surprised: int
    """Above it: too far from what the actor does."""


class ReplayBuffer(Generic[T]):
    """Successful trajectories, one of a kind, the oldest dropped first when it is full."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"a buffer must hold something, not {capacity}")
        self._capacity = capacity
        self._items: dict[Hashable, T] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        """Oldest first."""
        return iter(self._items.values())

    def add(self, items: Iterable[tuple[Hashable, T]]) -> int:
        """Adds (identity, trajectory) pairs; those that are there already stay where they are. Returns the new ones."""
        added = 0
        for identity, item in items:
            if identity not in self._items:
                self._items[identity] = item
                added += 1
        for oldest in list(self._items)[: max(0, len(self._items) - self._capacity)]:
            del self._items[oldest]
        return added
