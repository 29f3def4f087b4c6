"""`--suite acme`: one page of MiniWoB++ as a suite of its own."""

from __future__ import annotations

from collections.abc import Sequence

from envs.core.tasks import TaskInfo
from envs.suites.entry import SuiteEntry
from envs.suites.miniwob.suite import MiniwobSuite

TASKS = (
    TaskInfo(name="click-test", category="form", has_checker=True, split="train", sample="Click the button."),
    TaskInfo(name="click-test-2", category="form", has_checker=True, split="test"),
)


class AcmeSuite(MiniwobSuite):
    name = "acme"

    def tasks(self) -> Sequence[TaskInfo]:
        return TASKS


ENTRY = SuiteEntry(
    make=lambda chromium, folder, settings, scoring: AcmeSuite(chromium, folder, settings),
    infos=lambda: TASKS,
    training_seeds=range(100, 200),
)
