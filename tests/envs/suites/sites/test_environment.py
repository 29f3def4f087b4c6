"""Whole episodes on real sites in real Chromium."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from envs.browser.chromium import Chromium
from envs.core.actions import Action, ActionResult, Goto, Status
from envs.core.observation import Observation
from envs.core.tasks import Score, TaskRef
from envs.suites.sites.copies import database_digest
from envs.suites.sites.detours import DetourStage
from envs.suites.sites.environment import SitesEnvironment
from envs.suites.sites.golden import missing_packages
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.proof import prove
from envs.suites.sites.suite import SitesSuite

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing_packages("forum")), reason="the extra `sites` is not installed"),
]
REPLY = TaskRef(suite="sites", name="forum-reply")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded() -> AsyncIterator[Chromium]:
    async with Chromium.launch() as chromium:
        yield chromium


@pytest_asyncio.fixture(loop_scope="module")
async def suite(guarded: Chromium, tmp_path: Path) -> AsyncIterator[SitesSuite]:
    async with SitesSuite(guarded, tmp_path) as created:
        yield created


@pytest_asyncio.fixture(loop_scope="module")
async def environment(suite: SitesSuite) -> AsyncIterator[SitesEnvironment]:
    created = await suite.environment()
    yield created
    await created.close()


class RecordingStage:
    """Executes actions in an environment and records them."""

    def __init__(self, environment: SitesEnvironment) -> None:
        self._environment = environment
        self.done: list[Action] = []

    async def observe(self) -> Observation:
        return await self._environment.observe()

    async def execute(self, action: Action) -> ActionResult:
        self.done.append(action)
        return await self._environment.execute(action)


async def solve(environment: SitesEnvironment, task: TaskRef) -> Score | None:
    await environment.reset(task)
    answer = await environment.task.template.solve(PageDriver(RecordingStage(environment)), environment.task.params)
    return await environment.score(answer)


@pytest.mark.parametrize(
    "name",
    [
        "shop-product-fact",
        pytest.param("shop-add-to-wish-list", marks=pytest.mark.heavy),  # test_shop_tasks.py proves others of the shop
        "forum-like",
        "code-comment",
        "cms-edit-title",
        "map-address",
    ],
)
async def test_an_instance_of_every_site_is_proven(environment: SitesEnvironment, name: str) -> None:
    proof = await prove(environment, TaskRef(suite="sites", name=name, seed=1), random_agent=False)
    assert proof.problems == ()
    assert proof.mutants >= 4


async def test_rollouts_of_one_task_do_not_see_each_other(suite: SitesSuite) -> None:
    """Each episode must see exactly its own reply. A row of another episode would be a failure."""
    environments = [await suite.environment() for _ in range(4)]
    try:
        scores = await asyncio.gather(*(solve(environment, REPLY) for environment in environments))
        assert [score and score.status for score in scores] == ["success"] * 4
    finally:
        await asyncio.gather(*(environment.close() for environment in environments))


async def test_a_reset_undoes_an_episode(environment: SitesEnvironment) -> None:
    score = await solve(environment, REPLY)
    assert score is not None and score.status == "success"
    copy = environment.fleet["forum"]
    golden = database_digest(copy.golden_database)
    assert database_digest(copy.database) != golden
    await environment.reset(REPLY)
    assert (await environment.evidence()).changed("forum") == ()
    score = await environment.score(None)
    assert score is not None and score.status == "failure"


async def test_a_server_that_dies_breaks_the_episode_and_not_the_next(environment: SitesEnvironment) -> None:
    await environment.reset(REPLY)
    os.kill(environment.fleet["forum"].info.pid, signal.SIGKILL)
    score = await environment.score("done")
    assert score is not None and score.status == "broken", "nothing is known about the agent"
    score = await solve(environment, REPLY)
    assert score is not None and score.status == "success"


async def test_a_killed_episode_is_replayed_to_the_same_state(suite: SitesSuite, environment: SitesEnvironment) -> None:
    await environment.reset(REPLY)
    stage = RecordingStage(environment)
    answer = await environment.task.template.solve(PageDriver(stage), environment.task.params)
    second = await suite.environment()
    try:
        await second.restore_state(REPLY, Path("unused"), stage.done)
        score = await second.score(answer)
        assert score is not None and score.status == "success"
        checks = await second.check_milestones()
        assert checks is not None and all(check.achieved for check in checks)
    finally:
        await second.close()


async def test_only_the_sites_of_the_task_can_be_reached(environment: SitesEnvironment) -> None:
    await environment.reset(REPLY)
    port = environment.fleet["forum"].info.port
    for url in ("http://shop.test/", f"http://127.0.0.1:{port}/", "http://example.com/"):
        assert (await environment.execute(Goto(url=url))).status is Status.BLOCKED
    assert (await environment.execute(Goto(url="http://forum.test/"))).status is Status.OK


async def test_a_detour_comes_back_and_the_task_is_still_solved(environment: SitesEnvironment) -> None:
    task = TaskRef(suite="sites", name="forum-like", seed=3)
    await environment.reset(task)
    stage = DetourStage(RecordingStage(environment), random.Random(4), rate=1.0)
    await environment.task.template.solve(PageDriver(stage), environment.task.params)
    assert stage.detours > 0
    score = await environment.score(None)
    assert score is not None and score.status == "success"
