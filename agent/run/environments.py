"""Starts the browser of a run and makes its suite, after the settings of both were checked."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from agent.config import SHOWN, RunConfig
from agent.episode.approval import asks_about_downloads, held_categories
from agent.run.run_store import Manifest
from agent.run.suites import known_suite
from envs.browser.chromium import Chromium
from envs.browser.context import stored_origins
from envs.core.errors import BadInput
from envs.core.settings import SessionSettings
from envs.core.tasks import Suite
from envs.security.allowlist import Origins
from envs.security.background_requests import Background
from envs.security.secrets import SecretVault
from envs.security.upstream_proxy import upstream_proxy
from envs.suites.entry import Scoring
from envs.suites.open_web import OpenTaskSuite
from envs.suites.webarena.evaluators import FuzzyJudge
from envs.suites.webarena.files import SUITE_NAMES

SuiteMaker = Callable[[Chromium, Path, SessionSettings], Suite]
"""Makes a suite from the run's browser, the run's folder and the session settings."""


@asynccontextmanager
async def open_suite(make: SuiteMaker, folder: Path, config: RunConfig) -> AsyncGenerator[Suite]:
    """A suite with its own browser; both are closed at the end. Raises BadInput, which includes BrowserMissing, and
    BrowserNotStarted."""
    check_session(config)
    own_tls = Origins.parse(config.session.allow).has_subresources or bool(
        held_categories(config.approve) or config.secrets
    )
    async with Chromium.launch(headed=config.headed, own_tls=own_tls) as chromium:
        suite = make(chromium, folder, session_settings(config))
        try:
            yield suite
        finally:
            await suite.close()


def check_session(config: RunConfig) -> None:
    """Checks a session's settings before anything is started. Raises BadInput."""
    check_display(config)
    check_upload_folder(config.session)
    stored_origins(config.session.storage_state)
    Background(config.session.background)
    upstream_proxy(config.session.proxy)


def check_display(config: RunConfig) -> None:
    """Raises BadInput if a window is requested on a machine without a display."""
    if not config.headed or not sys.platform.startswith("linux"):
        return
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        raise BadInput("--headed needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set; try xvfb-run")


def check_upload_folder(session: SessionSettings) -> None:
    """Raises BadInput if `--upload-folder` is not a folder."""
    if session.upload_folder is not None and not session.upload_folder.is_dir():
        raise BadInput(f"--upload-folder {str(session.upload_folder)!r} is not a folder: name an existing one")


def session_settings(config: RunConfig) -> SessionSettings:
    """The configured session settings, completed for the run's options.

    Pictures for the policy and a grounder need the boxes of the elements. Approval needs their effects and holds
    requests. If a person
    approves downloads, no other download is kept.
    """
    held = held_categories(config.approve)
    session = config.session.model_copy(update={"playwright_trace": config.trace_zip, "hold": held})
    if asks_about_downloads(config.approve):
        session = session.model_copy(update={"downloads": "approved"})
    boxes = config.screenshots in SHOWN or config.grounder is not None
    seen = {"boxes": boxes, "effects": bool(config.approve)}
    needed = {name: True for name, is_needed in seen.items() if is_needed}
    return session.model_copy(update={"observe": session.observe.model_copy(update=needed)})


def check_scoring(manifest: Manifest) -> None:
    """Raises BadInput if `--strict-original` is set for a suite without original evaluators."""
    if manifest.config.strict_original and manifest.suite not in SUITE_NAMES:
        other = "an open task" if manifest.open_task else f"the suite {manifest.suite}"
        raise BadInput(f"--strict-original is for {', '.join(SUITE_NAMES)}, not for {other}")


def suite_maker(manifest: Manifest, vault: SecretVault, judge: FuzzyJudge | None) -> SuiteMaker:
    """The maker of the suite that *manifest* names. Checkers that compare texts by meaning use *judge*. Raises
    BadInput."""
    check_scoring(manifest)
    scoring = Scoring(judge, manifest.config.strict_original)
    task = manifest.open_task
    if task is not None:

        def make_open(chromium: Chromium, folder: Path, settings: SessionSettings) -> Suite:
            return OpenTaskSuite(chromium, folder, settings, instruction=task.instruction, url=task.url, vault=vault)

        return make_open
    known = known_suite(manifest.suite)
    return lambda chromium, folder, settings: known.make(chromium, folder, settings, scoring)
