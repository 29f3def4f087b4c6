"""The usage of an episode is the sum of all answers of its models, also of those before an environment was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.run.runner import run_suite
from envs.browser.chromium import Chromium
from envs.core.settings import SessionSettings
from envs.core.tasks import Environment, Score, TaskSelection
from envs.core.trace_store import read_trace
from envs.suites.open_web import SUITE, TASK, OpenTaskSuite
from tests.agent.roles import Roles
from tests.agent.shop import Shop, config
from tests.models.providers.servers import misbehaving_server

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]


async def test_calls_before_an_environment_was_lost_are_counted(shop: Shop, tmp_path: Path) -> None:
    """The checker's server fails once, after the page was rated for the last time."""
    failures = ["the database is away"]

    async def check(answer: str | None, environment: Environment) -> Score:
        if failures:
            raise OSError(failures.pop())
        return Score(status="success", reward=1.0, evidence=f"{shop.orders}")

    def make(chromium: Chromium, folder: Path, settings: SessionSettings) -> OpenTaskSuite:
        return OpenTaskSuite(chromium, folder, settings, instruction="Order for bob", url=shop.url, checker=check)

    roles = Roles()
    async with misbehaving_server(roles) as server:
        settings = config(policy="openai:m", planner="same", judge="same", k=2, base_url=server.openai_url)
        (episode,) = (await run_suite(settings, TaskSelection(SUITE, (TASK,), (0,)), tmp_path, suite=make)).episodes
    assert (episode.outcome, failures) == ("success", [])
    assert roles.asked["rater"] > 0
    assert episode.totals.model_calls == sum(roles.asked.values())
    trace = read_trace(episode.trace_path)
    assert trace.footer is not None
    written = [call for record in (*trace.events, trace.footer) for call in record.calls]
    written += [call for step in trace.steps for call in step.intent.calls]
    written += [plan.call for plan in trace.plans if plan.call is not None]
    assert len(written) == episode.totals.model_calls
