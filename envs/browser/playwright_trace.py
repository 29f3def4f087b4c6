"""Records Playwright's own trace of a browser context, a zip file for `playwright show-trace`.

The trace contains actions, screenshots, network traffic and page snapshots, so also all typed text: a context that may
receive a declared secret is never traced. Tracing slows down every action, and a page can detect it.
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
"""Timeout for writing one trace."""


@runtime_checkable
class TracedEnvironment(Protocol):
    """An environment that can record a Playwright trace of an episode."""

    async def save_playwright_trace(self, path: Path) -> bool:
        """Writes the trace since the last call; False if there is none or the browser is gone."""
        ...


def refuse_secrets(secrets: SecretVault) -> None:
    """Raises BadInput if a secret is declared."""
    if secrets:
        raise BadInput("Playwright's trace would contain the declared secrets: leave out --trace-zip, or the secrets")


async def begin(context: BrowserContext, seconds: float) -> None:
    """Starts tracing. Raises PlaywrightError or TimeoutError."""
    async with asyncio.timeout(seconds):
        await context.tracing.start(screenshots=True, snapshots=True)


async def save(context: BrowserContext, path: Path) -> bool:
    """Writes the trace so far atomically to *path* and begins a new part; False if that was not possible."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with replacing(path) as part:
            async with asyncio.timeout(SAVE_S):
                await context.tracing.stop_chunk(path=part)
                await context.tracing.start_chunk()
    except (PlaywrightError, TimeoutError, FileNotFoundError):
        return False  # the browser is gone or too busy; the episode continues without this trace
    return True
