"""BrowserGym environments through the adapter.

Tests that need BrowserGym itself are `heavy`: it pins an old Playwright and needs its own environment.
Run them with BROWSERGYM_PYTHON=…/python pytest -m heavy tests/envs/browsergym.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from envs.browser.chromium import Chromium
from envs.core.actions import Click, Goto, NewTab, Status, Stop
from envs.core.errors import BadInput, ResetFailed
from envs.core.settings import SessionSettings
from envs.core.tasks import TaskRef
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.suites.browsergym.browser import SharedChromium
from envs.suites.browsergym.environment import BrowserGymEnvironment
from envs.suites.browsergym.names import environment_of, is_rebuilt
from envs.suites.browsergym.process import GymFailed, GymProcess, registered
from envs.suites.browsergym.suite import BrowserGymSuite, task_infos
from tests.envs.browser.browsing import QUICK, ref_of
from tests.envs.browser.processes import all_gone, belonging
from tests.envs.browser.web import Web
from tests.envs.contract import check_environment

HERE = Path(__file__).parent
PRESS = """<button onclick="document.title = 'done ' + new URLSearchParams(location.search).get('seed')">Press</button>
<a href="/other" target=_blank>Other</a>"""


def _fake_python(folder: Path, script: str) -> str:
    """A program in place of BrowserGym's Python."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("name", ["browsergym:", "browsergym: ", "miniwob"])
def test_a_name_without_an_environment_is_one_line(name: str) -> None:
    with pytest.raises(BadInput, match=r"write browsergym:ENV"):
        environment_of(name)


@pytest.mark.parametrize(
    ("module", "environment", "rebuilt"),
    [
        ("", "miniwob.click-test", True),
        ("", "browsergym/miniwob.click-test", True),
        ("my.tasks", "mine", True),
        ("", "webarena.310", False),
        ("", "browsergym/workarena.servicenow.order-loaner-laptop", False),
    ],
)
def test_which_environments_a_reset_restores(module: str, environment: str, rebuilt: bool) -> None:
    assert is_rebuilt(module, environment) is rebuilt


async def test_actions_are_not_repeated_on_a_server_that_keeps_its_state(tmp_path: Path) -> None:
    environment = BrowserGymEnvironment(tmp_path, QUICK)
    with pytest.raises(ResetFailed, match="they are not repeated"):
        await environment.restore_state(
            TaskRef(suite="browsergym:webarena", name="webarena.310", seed=0), tmp_path, [Click(ref=1)]
        )
    await environment.close()


def test_without_the_package_the_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BROWSERGYM_PYTHON", raising=False)
    monkeypatch.setenv("PYTHONPATH", "")
    if (
        subprocess.run([sys.executable, "-c", "import browsergym.core"], capture_output=True, check=False).returncode
        == 0
    ):
        pytest.skip("BrowserGym is installed here")
    with pytest.raises(BadInput, match=r"has no browsergym.*set BROWSERGYM_PYTHON=gym/bin/python") as caught:
        task_infos("browsergym:miniwob.click-test")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo nonsense", "answered no JSON"),
        ("true", "has no environment"),
        ("echo '{\"environments\": []}'", "has no environment 'x'"),
        ('echo \'{"error": "ValueError: odd"}\'', "ValueError: odd"),
    ],
)
def test_a_worker_without_an_answer_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    monkeypatch.setenv("BROWSERGYM_PYTHON", _fake_python(tmp_path, script))
    with pytest.raises(BadInput, match=says):
        registered("x")
    monkeypatch.setenv("BROWSERGYM_PYTHON", str(tmp_path / "gone"))
    with pytest.raises(BadInput, match="is not a program"):
        registered("x")


async def test_a_worker_that_dies_or_hangs_is_an_error_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSERGYM_PYTHON", _fake_python(tmp_path, "read line"))
    dying = await GymProcess.start(tmp_path / "log")
    with pytest.raises(GymFailed, match=r"has ended: see browsergym\.log"):
        await dying.ask("check")
    await dying.end()
    monkeypatch.setenv("BROWSERGYM_PYTHON", _fake_python(tmp_path, "exec sleep 60"))
    monkeypatch.setattr("envs.suites.browsergym.process.ANSWER_S", 0.2)
    hanging = await GymProcess.start(tmp_path / "log")
    with pytest.raises(GymFailed, match=r"did not answer 'check' within 0\.2 s"):
        await hanging.ask("check")
    await hanging.end()


@pytest.mark.browser
async def test_the_shared_browser_answers_and_leaves_nothing() -> None:
    async with AllowlistProxy(Origins()) as proxy:
        chromium = await SharedChromium.start(proxy)
        home = chromium._home
        assert chromium.endpoint.startswith("http://127.0.0.1:")
        assert belonging(str(home))
        await chromium.end()
        await chromium.end()
        assert await all_gone(str(home)), "its watchdog goes by itself, a moment later"


# With BrowserGym itself


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    if not os.environ.get("BROWSERGYM_PYTHON"):
        pytest.skip("set BROWSERGYM_PYTHON to a Python with browsergym-core")
    with Web() as served:
        served["/press"] = PRESS
        served["/other"] = "<p>another page</p>"
        monkeypatch.setenv("MIRATEST_SITE", f"http://127.0.0.1:{served.port}")
        monkeypatch.setenv("PYTHONPATH", str(HERE))
        yield served


@pytest_asyncio.fixture
async def environment(web: Web, tmp_path: Path) -> AsyncIterator[BrowserGymEnvironment]:
    settings = QUICK.model_copy(update={"allow": (f"http://127.0.0.1:{web.port}",)})
    environment = BrowserGymEnvironment(tmp_path, settings, "gym_tasks")
    yield environment
    await environment.close()


def ref(name: str, seed: int = 3) -> TaskRef:
    return TaskRef(suite="browsergym:gym_tasks:miratest", name=f"miratest.{name}", seed=seed)


async def press(environment: BrowserGymEnvironment) -> None:
    seen = await environment.observe()
    assert (await environment.execute(Click(ref=ref_of(seen, "Press")))).status is Status.OK


@pytest.mark.heavy
@pytest.mark.browser
async def test_environments_of_a_module_are_listed(web: Web, tmp_path: Path) -> None:
    async with Chromium.launch() as chromium:
        suite = BrowserGymSuite(chromium, tmp_path, SessionSettings(), name="browsergym:gym_tasks:miratest")
        assert [info.name for info in suite.tasks()] == ["miratest.broken", "miratest.press", "miratest.tell"]
        await (await suite.environment()).close()
    assert [info.name for info in task_infos("browsergym:openended")] == ["openended"]
    with pytest.raises(BadInput, match="has no environment 'nothing'"):
        task_infos("browsergym:nothing")


@pytest.mark.heavy
@pytest.mark.browser
async def test_mira_solves_a_task_and_browsergym_scores_it(environment: BrowserGymEnvironment) -> None:
    start = await environment.reset(ref("press"))
    assert (start.instruction, start.category) == ("Press the button number 3.", "open")
    assert not await environment.done()
    unfinished = await environment.score(None)
    assert unfinished is not None and unfinished.status == "failure"
    await press(environment)
    assert await environment.done()
    score = await environment.score(None)
    assert score is not None and (score.status, score.reward) == ("success", 1.0)
    again = await environment.reset(ref("press", seed=4))
    assert again.instruction.endswith("number 4.")
    assert not await environment.done()
    await press(environment)
    assert await environment.done()


@pytest.mark.heavy
@pytest.mark.browser
async def test_an_answer_is_sent_to_the_chat(environment: BrowserGymEnvironment) -> None:
    await environment.reset(ref("tell"))
    assert (await environment.execute(Stop(answer="3"))).status is Status.STOPPED
    score = await environment.score("3")
    assert score is not None and score.status == "success"
    await environment.reset(ref("tell"))
    half = await environment.score("4")
    assert half is not None and (half.status, half.reward) == ("failure", 0.5)


@pytest.mark.heavy
@pytest.mark.browser
async def test_a_task_that_raises_is_broken_and_not_failed(environment: BrowserGymEnvironment) -> None:
    await environment.reset(ref("broken"))
    assert await environment.done()
    score = await environment.score(None)
    assert score is not None and score.status == "broken"
    assert "RuntimeError: the database is gone" in score.evidence


@pytest.mark.heavy
@pytest.mark.browser
async def test_tabs_and_the_proxy(environment: BrowserGymEnvironment, web: Web) -> None:
    await environment.reset(ref("press"))
    assert (await environment.execute(Goto(url="http://elsewhere.example/"))).status is Status.BLOCKED
    assert (await environment.execute(NewTab())).status is Status.OK
    assert (await environment.execute(Goto(url=web.url("/press?seed=3")))).status is Status.OK
    await press(environment)
    assert await environment.done(), "BrowserGym knows the new tab"
    await environment.execute(Click(ref=ref_of(await environment.observe(), "Other")))
    assert (await environment.observe()).url == web.url("/other")


@pytest.mark.heavy
@pytest.mark.browser
async def test_a_task_on_a_site_that_is_not_allowed_says_so(web: Web, tmp_path: Path) -> None:
    environment = BrowserGymEnvironment(tmp_path, QUICK, "gym_tasks")
    with pytest.raises(ResetFailed, match=rf"begins on http://127\.0\.0\.1:{web.port}, which .* use --allow"):
        await environment.reset(ref("press"))
    await environment.close()


@pytest.mark.heavy
@pytest.mark.browser
async def test_the_contract_of_environments_holds(environment: BrowserGymEnvironment, tmp_path: Path, web: Web) -> None:
    await check_environment(environment, ref("press"), tmp_path / "state", [Goto(url=web.url("/press?seed=9"))])
