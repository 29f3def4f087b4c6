"""The worlds a run plays in: one Chromium, and the suite made on top of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from agent.config import RunConfig
from agent.run_store import Manifest
from envs.chromium import Chromium
from envs.errors import BadInput
from envs.open_world import OpenWorld
from envs.secrets import SecretVault
from envs.settings import SessionSettings
from envs.tasks import Suite

SuiteMaker = Callable[[Chromium, Path, SessionSettings], Suite]
"""Makes a suite of your own: the run's browser, the run's folder, the session settings."""


def _miniwob(chromium: Chromium, folder: Path, settings: SessionSettings) -> Suite:
    from envs.miniwob.suite import MiniwobSuite

    return MiniwobSuite(chromium, folder, settings)


def _sites(chromium: Chromium, folder: Path, settings: SessionSettings) -> Suite:
    from envs.sites.suite import SitesSuite

    return SitesSuite(chromium, folder, settings)


SUITES: dict[str, SuiteMaker] = {"miniwob": _miniwob, "sites": _sites}
"""Suites that a run can name."""


@asynccontextmanager
async def open_world(make: SuiteMaker, folder: Path, config: RunConfig) -> AsyncGenerator[Suite]:
    """A suite over a browser of its own; both are closed at the end. Raises BadInput, BrowserMissing among it."""
    async with Chromium.launch(headed=config.headed) as chromium:
        suite = make(chromium, folder, session_settings(config))
        try:
            yield suite
        finally:
            await suite.close()


def session_settings(config: RunConfig) -> SessionSettings:
    """The configured ones; marks need the boxes of the elements."""
    session = config.session
    if config.screenshots != "marks":
        return session
    return session.model_copy(update={"observe": session.observe.model_copy(update={"boxes": True})})


def suite_maker(manifest: Manifest, vault: SecretVault) -> SuiteMaker:
    """The maker that *manifest* names. Raises BadInput for a suite that is not known here."""
    task = manifest.open_task
    if task is not None:

        def make_open(chromium: Chromium, folder: Path, settings: SessionSettings) -> Suite:
            return OpenWorld(chromium, folder, settings, instruction=task.instruction, url=task.url, vault=vault)

        return make_open
    if manifest.suite not in SUITES:
        raise BadInput(f"unknown suite {manifest.suite!r}: known are {', '.join(sorted(SUITES))}")
    return SUITES[manifest.suite]
