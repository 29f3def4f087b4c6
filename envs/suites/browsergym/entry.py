"""Makes the entry of a suite `browsergym:ENV`. The suite's module is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envs.core.settings import SessionSettings
from envs.core.tasks import Suite, TaskInfo
from envs.suites.entry import Scoring, SuiteEntry

if TYPE_CHECKING:
    from envs.browser.chromium import Chromium


def browsergym_entry(name: str) -> SuiteEntry:
    """The entry of the suite *name*, `browsergym:ENV`."""

    def make(chromium: Chromium, folder: Path, settings: SessionSettings, scoring: Scoring) -> Suite:
        from envs.suites.browsergym.suite import BrowserGymSuite

        return BrowserGymSuite(chromium, folder, settings, name=name)

    def infos() -> Sequence[TaskInfo]:
        from envs.suites.browsergym.suite import task_infos

        return task_infos(name)

    return SuiteEntry(make, infos)
