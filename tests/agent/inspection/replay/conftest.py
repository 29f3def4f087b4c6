"""Fixtures of the replay tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agent.inspection.replay.orders import Orders


@pytest.fixture
def orders() -> Iterator[Orders]:
    """A real web server whose markup a test can rebuild."""
    served = Orders()
    yield served
    served.close()
