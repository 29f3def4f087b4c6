"""Fixtures: local sites, one Chromium, and `play`, which runs a task entry and returns its score."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from envs.browser.chromium import Chromium
from envs.core.settings import SessionSettings, SettleSettings
from envs.core.tasks import TaskRef
from envs.suites.webarena.accounts import Accounts
from envs.suites.webarena.environment import WebArenaEnvironment
from envs.suites.webarena.evaluators import FuzzyJudge, no_judge
from envs.suites.webarena.raw_format import RawTask
from envs.suites.webarena.suite import WebArenaSuite
from envs.suites.webarena.verified_format import VerifiedTask
from tests.envs.suites.webarena.places import Places

QUICK = SessionSettings(step_deadline_s=15.0, navigation_s=10.0, settle=SettleSettings(max_s=1.0))
TASK = TaskRef(suite="webarena", name="7")

Start = Callable[..., Awaitable[WebArenaEnvironment]]


@pytest.fixture(scope="session")
def servers() -> Iterator[Places]:
    served = Places()
    yield served
    served.close()


@pytest.fixture
def places(servers: Places) -> Places:
    """The local sites in their initial state."""
    servers.posts.clear()
    servers.orders.clear()
    return servers


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def guarded() -> AsyncIterator[Chromium]:
    async with Chromium.launch() as chromium:
        yield chromium


@pytest_asyncio.fixture(loop_scope="session")
async def start(guarded: Chromium, places: Places, tmp_path: Path) -> AsyncIterator[Start]:
    """`await start(raw(…))`: the environment of that task, reset; logged in by cookies unless *environ* is given."""
    states = places.store_logins(tmp_path / "auth")
    async with AsyncExitStack() as stack:

        async def make(
            entry: dict[str, Any],
            *,
            judge: FuzzyJudge = no_judge,
            environ: dict[str, str] | None = None,
            allow: tuple[str, ...] = (),
            strict_original: bool = False,
            reset: bool = True,
        ) -> WebArenaEnvironment:
            suite = WebArenaSuite(
                guarded,
                tmp_path / "run",
                QUICK.model_copy(update={"allow": allow}),
                name="webarena",
                judge=judge,
                strict_original=strict_original,
                tasks=[(VerifiedTask if "start_urls" in entry else RawTask).model_validate(entry).task()],
                sites=places.sites,
                accounts=Accounts.from_environment({"WA_AUTH": str(states)} if environ is None else environ),
                wait_s=0.5,
            )
            environment = await suite.environment()
            stack.push_async_callback(environment.close)
            if reset:
                await environment.reset(TASK)
            return environment

        yield make
