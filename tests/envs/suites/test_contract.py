"""Checks the environment contract on the suites `sites` and `open`; the tests of other suites check it there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from envs.browser.chromium import Chromium
from envs.core.actions import Action, Goto
from envs.core.tasks import TaskRef
from envs.suites.open_web import OpenTaskSuite
from envs.suites.sites.golden import missing_packages
from envs.suites.sites.suite import SitesSuite
from tests.envs.browser.browsing import QUICK
from tests.envs.browser.web import Web
from tests.envs.contract import check_environment

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

NEEDS_SITES = pytest.mark.skipif(bool(missing_packages("forum")), reason="the extra `sites` is not installed")
FORUM = (Goto(url="http://forum.test/category/"), Goto(url="http://forum.test/"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded() -> AsyncIterator[Chromium]:
    async with Chromium.launch() as browser:
        yield browser


@NEEDS_SITES
@pytest.mark.slow
@pytest.mark.parametrize("actions", [(), FORUM], ids=["start", "visited"])
async def test_sites_keep_the_contract(guarded: Chromium, tmp_path: Path, actions: tuple[Action, ...]) -> None:
    task = TaskRef(suite="sites", name="forum-reply")
    async with SitesSuite(guarded, tmp_path / "run") as suite:
        environment = await suite.environment()
        try:
            await check_environment(environment, task, tmp_path / "state", actions)
        finally:
            await environment.close()


@pytest.mark.parametrize("path", ["", "/next"], ids=["start", "visited"])
async def test_open_tasks_keep_the_contract(guarded: Chromium, tmp_path: Path, path: str) -> None:
    with Web() as web:
        web["/"], web["/next"] = "<a href=/next>next</a>", "<button>Send</button>"
        suite = OpenTaskSuite(guarded, tmp_path / "run", QUICK, instruction="send it", url=web.url())
        environment = await suite.environment()
        actions = [Goto(url=web.url(path))] if path else []
        try:
            await check_environment(environment, TaskRef(suite="open", name="task"), tmp_path / "state", actions)
        finally:
            await environment.close()
