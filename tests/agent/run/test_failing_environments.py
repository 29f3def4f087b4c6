"""Environments that raise what no contract names: an episode breaks, and the run continues."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.run.oracle import miniwob_oracle
from agent.run.runner import run_suite
from envs.browser.chromium import Chromium
from envs.core.settings import SessionSettings
from envs.core.tasks import EpisodeStart, TaskRef, TaskSelection
from envs.suites.miniwob.environment import MiniwobEnvironment
from envs.suites.miniwob.suite import MiniwobSuite
from tests.agent.shop import config, scripted

pytestmark = pytest.mark.browser


class Faulty(MiniwobEnvironment):
    """Has a bug in one task, cannot be closed after it, and cannot save a trace."""

    failed = False

    async def reset(self, task: TaskRef) -> EpisodeStart:
        if task.name == "click-button":
            self.failed = True
            raise KeyError("no such price")
        return await super().reset(task)

    async def save_playwright_trace(self, path: Path) -> bool:
        raise RuntimeError("no trace")

    async def close(self) -> None:
        await super().close()
        if self.failed:
            raise RuntimeError("closed twice")


class FaultySuite(MiniwobSuite):
    async def environment(self) -> Faulty:
        sound = await super().environment()
        return Faulty(sound.session, self._server)


def make(chromium: Chromium, folder: Path, settings: SessionSettings) -> FaultySuite:
    return FaultySuite(chromium, folder, settings)


async def test_a_bug_of_a_suite_breaks_its_episode_and_not_the_run(tmp_path: Path) -> None:
    selection = TaskSelection("miniwob", ("click-test", "click-button", "enter-text"), (0,))
    policy = scripted(miniwob_oracle)
    run = await run_suite(config(trace_zip=True), selection, tmp_path, policy=policy, suite=make)
    assert [(episode.outcome, episode.error) for episode in run.episodes] == [
        ("success", None),
        ("broken", "EnvironmentLost: KeyError: 'no such price'"),
        ("success", None),
    ]
    assert run.complete
