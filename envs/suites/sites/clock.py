"""The fixed time of the suite. Every site is built at this time and every episode starts at it."""

from __future__ import annotations

from datetime import UTC, date, datetime

NOW = datetime(2026, 3, 16, 10, 0, 0, tzinfo=UTC)
"""A Monday. A reset sets the site's clock to this time; it runs on from there. So relative times ("2 hours ago")
look the same in every episode."""
TODAY: date = NOW.date()
