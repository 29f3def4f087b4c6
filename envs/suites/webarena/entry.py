"""Registers WebArena and its variants. The suite's module is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envs.core.settings import SessionSettings
from envs.core.tasks import Suite, TaskInfo
from envs.suites.entry import Scoring, SuiteEntry
from envs.suites.webarena.files import SuiteName

if TYPE_CHECKING:
    from envs.browser.chromium import Chromium


def _entry(name: SuiteName) -> SuiteEntry:
    def make(chromium: Chromium, folder: Path, settings: SessionSettings, scoring: Scoring) -> Suite:
        from envs.suites.webarena.evaluators import no_judge
        from envs.suites.webarena.suite import WebArenaSuite

        # Its accounts log in with passwords, which Playwright's trace would hold.
        untraced = settings.model_copy(update={"playwright_trace": False})
        judge = scoring.judge or no_judge
        return WebArenaSuite(
            chromium, folder, untraced, name=name, judge=judge, strict_original=scoring.strict_original
        )

    def infos() -> Sequence[TaskInfo]:
        from envs.suites.webarena.suite import task_infos

        return task_infos(name)

    return SuiteEntry(make, infos)


LITE = _entry("webarena-lite")
ORIGINAL = _entry("webarena")
VERIFIED = _entry("webarena-verified")
VERIFIED_HARD = _entry("webarena-verified-hard")
