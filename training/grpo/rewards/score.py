"""The score of one completion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Score:
    """A reward and its parts."""

    total: float
    """Finite, at most the reward's `max_reward`."""
    parts: Mapping[str, float] = field(default_factory=dict[str, float])
    """Parts of the reward by name, for curves and reports."""
