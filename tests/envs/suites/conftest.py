"""Fixtures of the tests of suites."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from envs.browser.chromium import Chromium
from envs.suites.miniwob import MiniwobEnvironment, MiniwobSuite


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def miniwob(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MiniwobEnvironment]:
    """An environment in a browser of its own, shared by the tests of a module."""
    async with (
        Chromium.launch() as chromium,
        MiniwobSuite(chromium, tmp_path_factory.mktemp("miniwob")) as suite,
    ):
        yield await suite.environment()
