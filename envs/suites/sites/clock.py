"""The suite's one point in time: every site is built at it, and every episode starts at it."""

from __future__ import annotations

from datetime import UTC, date, datetime

NOW = datetime(2026, 3, 16, 10, 0, 0, tzinfo=UTC)
"""A Monday. Each site's clock is set to it at a reset and ticks on from there, so that relative times
("2 hours ago") look the same in every episode."""
TODAY: date = NOW.date()
