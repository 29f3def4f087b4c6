"""Registers the suite `miniwob`. The suite's module is imported when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envs.core.settings import SessionSettings
from envs.core.tasks import Suite, TaskInfo
from envs.suites.entry import Scoring, SuiteEntry
from envs.suites.miniwob.task_sets import FIRST_TRAINING_SEED

if TYPE_CHECKING:
    from envs.browser.chromium import Chromium


def _make(chromium: Chromium, folder: Path, settings: SessionSettings, scoring: Scoring) -> Suite:
    from envs.suites.miniwob.suite import MiniwobSuite

    return MiniwobSuite(chromium, folder, settings)


def _infos() -> Sequence[TaskInfo]:
    from envs.suites.miniwob.suite import task_infos

    return task_infos()


ENTRY = SuiteEntry(_make, _infos, range(FIRST_TRAINING_SEED, 2**31))
