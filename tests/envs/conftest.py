"""Fixtures for tests of sessions: Mira's Chromium, a web server, and sessions behind a real proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from envs.browser.chromium import Chromium
from envs.browser.session import BrowserSession
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.secrets import NO_SECRETS, SecretVault
from tests.browsers import whole_browser
from tests.envs.browser.browsing import QUICK, Opener
from tests.envs.browser.web import Web


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as served:
        yield served


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def guarded() -> AsyncIterator[Chromium]:
    chromium = Chromium.launch()
    with whole_browser():
        await chromium.start()
    yield chromium
    await chromium.close()


@pytest_asyncio.fixture(loop_scope="session")
async def opener(guarded: Chromium, web: Web, tmp_path: Path) -> AsyncIterator[Opener]:
    """`await opener(dialogs="accept")` opens a session that may access the test's web server and *ports*."""
    async with AsyncExitStack() as stack:

        async def make(
            *, vault: SecretVault = NO_SECRETS, ports: tuple[int, ...] = (), **settings: Any
        ) -> BrowserSession:
            origins = Origins.parse([f"http://127.0.0.1:{port}" for port in (web.port, *ports)])
            boundary = await stack.enter_async_context(AllowlistProxy(origins))
            session = await guarded.session(QUICK.model_copy(update=settings), boundary, tmp_path / "run", vault)
            stack.push_async_callback(session.close)
            return session

        yield make
