"""The tiers of SSL (Wu et al. 2026, Eq. 4 and App. B.1), of points and of trajectories."""

from __future__ import annotations

import math


def tier_value(proximity: float, zones: int = 4) -> float:
    """Ŝ, 0 to 1: value of the zone that holds a *proximity*, 0 to 1, of a point (φ) or a trajectory (S, Eq. 4); 0
    for 0. The bounds are those of φ, as in :func:`training.grpo.rewards.ssl.zone_value`. *zones*: K, at least 2."""
    if proximity <= 0:
        return 0.0
    return zone_at(math.sqrt(-2 * math.log(min(1.0, proximity))), zones)


def zone_at(deviations: float, zones: int) -> float:
    """Value of the zone, 0 to 1, at a distance of 0 or more standard deviations from the centre. The inner zones divide
    three deviations evenly. *zones*: K, at least 2."""
    step = 3 / (zones - 1)
    zone = max(1, math.ceil(deviations / step - 1e-9))  # a point on a bound belongs to the inner zone (φ ≥ τ)
    return (zones + 1 - min(zone, zones)) / zones
