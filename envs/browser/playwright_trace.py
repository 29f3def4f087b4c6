"""Playwright's own trace of a browser context: the zip that `playwright show-trace` opens.

It holds what was done, pictures, the network and snapshots of the page, and so everything that was typed: a context
that may be given a declared secret is never traced. It costs time at every action, and a page can notice it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from playwright.async_api import BrowserContext
from playwright.async_api import Error as PlaywrightError

from envs.core.atomic_write import replacing
from envs.core.errors import BadInput
from envs.security.secrets import SecretVault

SAVE_S: Final = 30.0
"""Bound on writing one trace."""


@runtime_checkable
class TracedEnvironment(Protocol):
    """An environment that can keep Playwright's trace of an episode."""

    async def save_playwright_trace(self, path: Path) -> bool:
        """Writes what was traced since the last call; False where nothing was, or the browser is gone."""
        ...


def refuse_secrets(secrets: SecretVault) -> None:
    """Raises BadInput where a secret is declared."""
    if secrets:
        raise BadInput("Playwright's trace would hold the declared secrets: leave out --trace-zip, or the secrets")


async def begin(context: BrowserContext, seconds: float) -> None:
    """Traces everything from now on. Raises PlaywrightError or TimeoutError."""
    async with asyncio.timeout(seconds):
        await context.tracing.start(screenshots=True, snapshots=True)


async def save(context: BrowserContext, path: Path) -> bool:
    """Writes the trace so far to *path*, whole or not at all, and begins a new part; False if that was not possible."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with replacing(path) as part:
            async with asyncio.timeout(SAVE_S):
                await context.tracing.stop_chunk(path=part)
                await context.tracing.start_chunk()
    except (PlaywrightError, TimeoutError, FileNotFoundError):
        return False  # the browser is gone, or too busy: an episode is worth more than its film
    return True
