"""The worlds a run plays in: one Chromium, and the suite made on top of it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.config import RunConfig
from agent.episode.approval import asks_about_downloads, held_categories
from agent.run.run_store import Manifest
from envs.browser.chromium import Chromium
from envs.browser.context import stored_origins
from envs.core.errors import BadInput
from envs.core.settings import SessionSettings
from envs.core.tasks import Suite, TaskInfo
from envs.security.allowlist import Origins
from envs.security.background_requests import Background
from envs.security.secrets import SecretVault
from envs.suites.browsergym import names as browsergym
from envs.suites.open_web import OpenWorld
from envs.suites.webarena.evaluators import FuzzyJudge
from envs.suites.webarena.files import SUITE_NAMES, SuiteName

SuiteMaker = Callable[[Chromium, Path, SessionSettings], Suite]
"""Makes a suite of your own: the run's browser, the run's folder, the session settings."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """What a run says of how its episodes are scored."""

    judge: FuzzyJudge | None = None
    """Asked by checkers that compare by meaning."""
    strict_original: bool = False
    """By the rules of the benchmark's own evaluators."""


@dataclass(frozen=True, slots=True)
class KnownSuite:
    """A suite that a run can name."""

    make: Callable[[Chromium, Path, SessionSettings, Scoring], Suite]
    infos: Callable[[], Sequence[TaskInfo]]
    """Its tasks, without starting anything."""


def _miniwob() -> KnownSuite:
    from envs.suites.miniwob import suite

    return KnownSuite(
        lambda chromium, folder, settings, _: suite.MiniwobSuite(chromium, folder, settings), suite.task_infos
    )


def _sites() -> KnownSuite:
    from envs.suites.sites import suite

    return KnownSuite(
        lambda chromium, folder, settings, _: suite.SitesSuite(chromium, folder, settings), suite.task_infos
    )


def _webarena(name: SuiteName) -> Callable[[], KnownSuite]:
    def known() -> KnownSuite:
        from envs.suites.webarena import suite
        from envs.suites.webarena.evaluators import no_judge

        def make(chromium: Chromium, folder: Path, settings: SessionSettings, scoring: Scoring) -> Suite:
            # Its accounts log in with passwords, which Playwright's trace would hold.
            untraced = settings.model_copy(update={"playwright_trace": False})
            judge = scoring.judge or no_judge
            original = scoring.strict_original
            return suite.WebArenaSuite(chromium, folder, untraced, name=name, judge=judge, strict_original=original)

        return KnownSuite(make, lambda: suite.task_infos(name))

    return known


SUITES: Mapping[str, Callable[[], KnownSuite]] = {
    "miniwob": _miniwob,
    "sites": _sites,
    **{name: _webarena(name) for name in SUITE_NAMES},
}
"""By the name that a run gives; a suite's own packages are imported when it is asked for."""


def _browsergym(name: str) -> KnownSuite:
    from envs.suites.browsergym import suite

    def make(chromium: Chromium, folder: Path, settings: SessionSettings, _: Scoring) -> Suite:
        return suite.BrowserGymSuite(chromium, folder, settings, name=name)

    return KnownSuite(make, lambda: suite.task_infos(name))


def known_suite(name: str) -> KnownSuite:
    """Raises BadInput for a name that is not known here."""
    if name.startswith(browsergym.PREFIX):
        return _browsergym(name)
    if name not in SUITES:
        raise BadInput(f"unknown suite {name!r}: known are {', '.join(SUITES)}, {browsergym.PREFIX}ENV")
    return SUITES[name]()


@asynccontextmanager
async def open_world(make: SuiteMaker, folder: Path, config: RunConfig) -> AsyncGenerator[Suite]:
    """A suite over a browser of its own; both are closed at the end. Raises BadInput, BrowserMissing among it, and
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
    """Raises BadInput for what can be seen to be wrong with a session's settings before anything is started."""
    check_display(config)
    check_upload_folder(config.session)
    stored_origins(config.session.storage_state)
    Background(config.session.background)


def check_display(config: RunConfig) -> None:
    """Raises BadInput where a window is asked for and there is nothing to show it on."""
    if not config.headed or not sys.platform.startswith("linux"):
        return
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        raise BadInput("--headed needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set; try xvfb-run")


def check_upload_folder(session: SessionSettings) -> None:
    """Raises BadInput where files are to be taken from a folder that is none."""
    if session.upload_folder is not None and not session.upload_folder.is_dir():
        raise BadInput(f"--upload-folder {str(session.upload_folder)!r} is no folder: nothing could be uploaded")


def session_settings(config: RunConfig) -> SessionSettings:
    """The configured ones; marks need the boxes of the elements, approval needs their effects and holds requests, and
    where a person approves downloads no other one is kept, whatever begins it."""
    held = held_categories(config.approve)
    session = config.session.model_copy(update={"playwright_trace": config.trace_zip, "hold": held})
    if asks_about_downloads(config.approve):
        session = session.model_copy(update={"downloads": "approved"})
    seen = {"boxes": config.screenshots == "marks", "effects": bool(config.approve)}
    wanted = {name: True for name, is_needed in seen.items() if is_needed}
    return session.model_copy(update={"observe": session.observe.model_copy(update=wanted)})


def check_scoring(manifest: Manifest) -> None:
    """Raises BadInput where the original's verdict is asked for and the suite has none."""
    if manifest.config.strict_original and manifest.suite not in SUITE_NAMES:
        other = "an open task" if manifest.open_task else f"the suite {manifest.suite}"
        raise BadInput(f"--strict-original is for {', '.join(SUITE_NAMES)}, not for {other}")


def suite_maker(manifest: Manifest, vault: SecretVault, judge: FuzzyJudge | None) -> SuiteMaker:
    """The maker that *manifest* names; *judge* is asked by checkers that compare by meaning. Raises BadInput."""
    check_scoring(manifest)
    scoring = Scoring(judge, manifest.config.strict_original)
    task = manifest.open_task
    if task is not None:

        def make_open(chromium: Chromium, folder: Path, settings: SessionSettings) -> Suite:
            return OpenWorld(chromium, folder, settings, instruction=task.instruction, url=task.url, vault=vault)

        return make_open
    known = known_suite(manifest.suite)
    return lambda chromium, folder, settings: known.make(chromium, folder, settings, scoring)
