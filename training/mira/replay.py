"""The replay buffer (MiRA paper, Alg. 2): past successes whose perplexity under the actor lies within a band."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Self, TypeVar

from pydantic import Field, model_validator

from envs.core.record import Record

T = TypeVar("T")

CAPACITY = 100_000
"""Maximum number of trajectories in the buffer (§6.1)."""


class Band(Record):
    """The range of perplexities that are kept, ends included. The default is the paper's `[1/0.9, 1/0.5]`."""

    low: float = Field(default=1 / 0.9, ge=0)
    high: float = Field(default=1 / 0.5, ge=0)

    @model_validator(mode="after")
    def _holds_something(self) -> Self:
        if self.high < 1:
            raise ValueError(
                f"the band ends at {self.high:g}, and a perplexity is at least 1: the limits are perplexities 1/p, not"
                " probabilities p; write 1/0.9 = 1.11 for 0.9"
            )
        if self.low > self.high:
            raise ValueError(f"the band from {self.low:g} to {self.high:g} holds no perplexity")
        return self

    def holds(self, perplexity: float) -> bool:
        return self.low <= perplexity <= self.high


def perplexity(logprobs: Sequence[float]) -> float:
    """`exp(−mean log π)` over the completion tokens of one step or one trajectory; at least 1.

    Raises ValueError without tokens.
    """
    if not logprobs:
        raise ValueError("a perplexity needs at least one completion token")
    return math.exp(-math.fsum(logprobs) / len(logprobs))


class BandCounts(NamedTuple):
    """How many trajectories of the buffer lie within, below and above the band."""

    chosen: int
    below_band: int
    """Perplexity below the band: nothing left to learn."""
    above_band: int
    """Perplexity above the band: too far from the actor's behaviour."""


class ReplayBuffer(Generic[T]):
    """A deduplicated buffer of successful trajectories. When it is full, the oldest are dropped."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        if capacity < 1:
            raise ValueError(f"the capacity of a buffer must be at least 1, not {capacity}")
        self._capacity = capacity
        self._items: dict[Hashable, T] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        """Oldest first."""
        return iter(self._items.values())

    def add(self, items: Iterable[tuple[Hashable, T]]) -> int:
        """Adds (identity, trajectory) pairs and skips known identities. Returns the number of new ones."""
        added = 0
        for identity, item in items:
            if identity not in self._items:
                self._items[identity] = item
                added += 1
        for oldest in list(self._items)[: max(0, len(self._items) - self._capacity)]:
            del self._items[oldest]
        return added
