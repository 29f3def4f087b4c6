"""What a reward says of one completion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Score:
    """A reward and what it is made of."""

    total: float
    """Finite; the greatest that the reward can give is its `max_reward`."""
    parts: Mapping[str, float] = field(default_factory=dict[str, float])
    """By name, for curves and reports."""
