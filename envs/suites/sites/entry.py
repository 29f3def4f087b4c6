"""Registers the suite `sites`. The suite's module is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envs.core.settings import SessionSettings
from envs.core.tasks import Suite, TaskInfo
from envs.suites.entry import Scoring, SuiteEntry
from envs.suites.sites.splits import EVALUATION_SEEDS

if TYPE_CHECKING:
    from envs.browser.chromium import Chromium


def _make(chromium: Chromium, folder: Path, settings: SessionSettings, scoring: Scoring) -> Suite:
    from envs.suites.sites.suite import SitesSuite

    return SitesSuite(chromium, folder, settings)


def _infos() -> Sequence[TaskInfo]:
    from envs.suites.sites.suite import task_infos

    return task_infos()


ENTRY = SuiteEntry(_make, _infos, range(EVALUATION_SEEDS, 2**31))
