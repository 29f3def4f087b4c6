"""MiniWoB++ as an environment: episodes by seed, the benchmark's verdict, resuming, milestones, the list of tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from envs.browser.chromium import Chromium
from envs.core.actions import Action, Click, ClickAt, Goto, NewTab, Type
from envs.core.tasks import Environment, Suite, TaskRef
from envs.suites.miniwob import MiniwobEnvironment, MiniwobSuite
from envs.suites.miniwob.harness import HARD_RESET
from envs.suites.miniwob.milestones import MILESTONES
from envs.suites.miniwob.suite import task_infos
from tests.envs.contract import check_environment
from tests.timing import until_async

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def suite(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[MiniwobSuite]:
    folder = tmp_path_factory.mktemp("miniwob")
    async with Chromium.launch() as chromium, MiniwobSuite(chromium, folder) as suite:
        yield suite


@pytest_asyncio.fixture(loop_scope="module")
async def environment(suite: MiniwobSuite) -> AsyncIterator[MiniwobEnvironment]:
    environment = await suite.environment()
    yield environment
    await environment.close()


def task(name: str, seed: int = 0) -> TaskRef:
    return TaskRef(suite="miniwob", name=name, seed=seed)


async def ref_of(environment: Environment, role: str, name: str) -> int:
    seen = await environment.observe()
    return next(e.ref for e in seen.elements if (e.key.role, e.key.name) == (role, name))


LOGIN = (Type(ref=1, text="karrie"), Type(ref=2, text="AU"), Click(ref=3))
"""The solution of login-user, seed 0."""


@pytest.mark.parametrize("actions", [(), LOGIN[:1], LOGIN[:2], LOGIN], ids=["start", "name", "password", "submitted"])
async def test_keeps_the_contract_of_environments(
    environment: MiniwobEnvironment, tmp_path: Path, actions: tuple[Action, ...]
) -> None:
    await check_environment(environment, task("login-user"), tmp_path, actions)


async def test_is_a_suite_and_lists_every_page(suite: MiniwobSuite) -> None:
    listed: Suite = suite
    infos = listed.tasks()
    assert len(infos) == 130
    assert all(info.has_checker for info in infos)
    assert sum(info.milestones > 1 for info in infos) >= 30
    assert set(MILESTONES) <= {info.name for info in task_infos()}


def listening() -> int:
    return sum(each.status == psutil.CONN_LISTEN for each in psutil.Process().net_connections())


async def test_a_closed_environment_leaves_no_socket(suite: MiniwobSuite) -> None:
    """A run replaces the environment of every broken episode: with its proxy it would reach the limit on files."""
    before = listening()
    environment = await suite.environment()
    assert listening() == before + 1
    await environment.close()
    assert await until_async(lambda: listening() == before)


async def test_the_instruction_is_one_line_and_not_repeated_on_the_page(environment: MiniwobEnvironment) -> None:
    start = await environment.reset(task("login-user"))
    assert start.instruction == (
        'Enter the username "karrie" and the password "AU" into the text fields and press login.'
    )
    text = (await environment.observe()).text
    assert "karrie" not in text
    assert "Time left" not in text


async def test_full_reward_is_success_and_ends_the_episode(environment: MiniwobEnvironment) -> None:
    await environment.reset(task("click-test"))
    assert not await environment.done()
    await environment.execute(Click(ref=await ref_of(environment, "button", "Click Me!")))
    assert await environment.done()
    score = await environment.score(None)
    assert score is not None
    assert (score.status, score.reward) == ("success", 1.0)


async def test_the_page_does_not_end_the_episode_of_a_slow_model(suite: MiniwobSuite) -> None:
    """After an hour: the page's own limit was 1,000 seconds once, which eight workers of a local model exceeded."""
    environment = await suite.environment()
    try:
        await environment.reset(task("click-test"))
        await environment.session.page.clock.install()
        await environment.reset(task("click-test"))
        await environment.session.page.clock.fast_forward("01:00:00")
        assert not await environment.done()
        await environment.execute(Click(ref=await ref_of(environment, "button", "Click Me!")))
        score = await environment.score(None)
        assert score is not None and (score.status, score.reward > 0.99) == ("success", True)
    finally:
        await environment.close()


async def test_a_wrong_answer_is_failure_with_no_reward(environment: MiniwobEnvironment) -> None:
    await environment.reset(task("click-test-2"))
    await environment.execute(Click(ref=await ref_of(environment, "button", "TWO")))
    score = await environment.score(None)
    assert score is not None
    assert (score.status, score.reward) == ("failure", 0.0)


async def test_a_part_of_the_reward_is_failure_and_is_kept(environment: MiniwobEnvironment) -> None:
    """find-greatest gives a reward of 0.1 for a wrong card."""
    await environment.reset(task("find-greatest"))
    await environment.execute(Click(ref=await ref_of(environment, "clickable", "5")))
    await environment.execute(Click(ref=await ref_of(environment, "button", "Submit")))
    score = await environment.score(None)
    assert score is not None
    assert (score.status, score.reward) == ("failure", 0.1)


async def test_the_benchmarks_own_start_button_gives_no_second_try(environment: MiniwobEnvironment) -> None:
    """After an episode the page shows START, which would begin another episode without our seed."""
    await environment.reset(task("click-test-2"))
    await environment.execute(Click(ref=await ref_of(environment, "button", "TWO"), count=3))
    await environment.execute(ClickAt(x=80, y=100))
    assert await environment.done()
    score = await environment.score(None)
    assert score is not None
    assert score.status == "failure"


@pytest.mark.parametrize("target", ["", "/miniwob/click-test.html"])
async def test_leaving_the_task_page_is_a_failure(environment: MiniwobEnvironment, target: str) -> None:
    """Includes a fresh copy of the task's own page, which is not the episode that was started."""
    await environment.reset(task("click-test"))
    origin = (await environment.observe()).url.split("/miniwob/")[0]
    await environment.execute(Goto(url=origin + (target or "/core/core.js")))
    assert await environment.done()
    score = await environment.score(None)
    assert score is not None
    assert score.status == "failure"
    assert "left" in score.evidence


async def test_an_episode_starts_without_the_tabs_of_the_one_before(environment: MiniwobEnvironment) -> None:
    await environment.reset(task("click-test"))
    assert (await environment.execute(NewTab())).ok
    await environment.reset(task("click-test-2"))
    seen = await environment.observe()
    assert [tab.active for tab in seen.tabs] == [True]
    assert not await environment.done()


async def test_nothing_else_is_accessible(environment: MiniwobEnvironment) -> None:
    await environment.reset(task("click-test"))
    result = await environment.execute(Goto(url="http://localhost:9/"))
    assert not result.ok
    start = await environment.reset(task("click-test"))
    assert start.instruction == "Click the button."


SOFT = sorted(
    {info.name for info in task_infos() if info.milestones}
    | {"click-button", "click-dialog", "social-media-some", "form-sequence", "use-slider", "drag-items"}
)
SHARE = sorted({*SOFT[::8], *HARD_RESET})
"""A fixed eighth, and all pages that are reloaded each time."""


@pytest.mark.slow
@pytest.mark.parametrize("names", [SHARE, pytest.param(SOFT, marks=pytest.mark.heavy)], ids=["eighth", "all"])
async def test_a_soft_reset_equals_a_hard_one(suite: MiniwobSuite, names: list[str]) -> None:
    """A seed gives the same instruction and observation after an unfinished episode."""
    soft, hard = await suite.environment(), await suite.environment()
    different: list[str] = []
    for name in names:
        await soft.reset(task(name, 1))
        for element in [e for e in (await soft.observe()).elements if e.shown][:2]:
            await soft.observe()
            await soft.execute(Click(ref=element.ref))
        await hard.reset(task("click-test"))
        started = await soft.reset(task(name, 2)), await hard.reset(task(name, 2))
        texts = (await soft.observe()).text, (await hard.observe()).text
        if started[0] != started[1] or texts[0] != texts[1]:
            different.append(name)
    await soft.close()
    await hard.close()
    assert not different
    assert set(SOFT) >= HARD_RESET


EVERY = [info.name for info in task_infos()]


def a_share_of_each_category(each: int) -> list[str]:
    """Every *each*-th page of a category, and its first."""
    by_category: dict[str, list[str]] = {}
    for info in task_infos():
        by_category.setdefault(info.category, []).append(info.name)
    return [name for names in by_category.values() for name in names[::each]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(a_share_of_each_category(4), id="a quarter of each category"),
        pytest.param(EVERY, marks=pytest.mark.heavy, id="all"),
    ],
)
async def test_every_page_starts_steps_and_scores(suite: MiniwobSuite, names: list[str]) -> None:
    from benchmarks.miniwob_pages import try_page

    environment = await suite.environment()
    pages = [await try_page(environment, name) for name in names]
    await environment.close()
    assert [page for page in pages if not page.works] == []
