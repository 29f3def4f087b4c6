"""Fixtures of the loop's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agent.shop import Shop


@pytest.fixture
def shop() -> Iterator[Shop]:
    """A web server that counts its orders."""
    served = Shop()
    yield served
    served.close()
