"""An open task: starts at an address, is reopened after a kill, and gets a new browser when its browser dies."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from envs.browser.chromium import Chromium
from envs.core.actions import Click, FocusTab, Goto, NewTab, Status, Stop, Type
from envs.core.errors import BadInput, ResetFailed
from envs.core.tasks import Environment, Score, TaskRef
from envs.security.secrets import SecretVault
from envs.suites.open_web import OpenEnvironment, OpenTaskSuite
from tests.envs.browser.browsing import QUICK, ref_of
from tests.envs.browser.processes import belonging, kill
from tests.envs.browser.web import Answer, Web
from tests.timing import HANG_S, Bound

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TASK = TaskRef(suite="open", name="task")
SECRET = "correct-horse-battery"
FORM = """<form action=/sent method=post><input name=q aria-label=Q><button>Send</button></form>
    <script>document.cookie = 'c=1'; localStorage.k = 'v'</script>"""


@pytest_asyncio.fixture(loop_scope="session")
async def environment(guarded: Chromium, web: Web, tmp_path: Path) -> AsyncIterator[OpenEnvironment]:
    web["/"] = FORM
    web["/sent"] = "<p>thank you</p>"
    made = await make(guarded, web, tmp_path)
    yield made
    await made.close()


async def make(chromium: Chromium, web: Web, folder: Path, *secrets: str) -> OpenEnvironment:
    vault = SecretVault.declare(secrets, web.url(), {"PW": SECRET})
    world = OpenTaskSuite(chromium, folder / "run", QUICK, instruction=" send\n it ", url=web.url(), vault=vault)
    assert [info.has_checker for info in world.tasks()] == [False]
    return await world.environment()


async def submit(environment: OpenEnvironment) -> None:
    seen = await environment.observe()
    await environment.execute(Type(ref=ref_of(seen, "Q"), text="hello"))
    result = await environment.execute(Click(ref=ref_of(await environment.observe(), "Send")))
    assert result.status is Status.OK


async def test_it_starts_at_the_address(environment: OpenEnvironment, web: Web) -> None:
    start = await environment.reset(TASK)
    assert (start.instruction, start.category, start.milestones) == ("send it", "open", ())
    assert (await environment.observe()).url == web.url()
    assert (await environment.execute(Goto(url="http://elsewhere.example/"))).status is Status.BLOCKED
    assert (await environment.execute(Stop(answer="x"))).status is Status.STOPPED
    assert await environment.score("x") is None and not await environment.done()


@pytest.mark.parametrize("origin", ["http://www.elsewhere.example", "https://www.elsewhere.example"])
async def test_a_start_that_leads_to_another_origin_names_it_and_the_way_on(
    environment: OpenEnvironment, web: Web, origin: str
) -> None:
    """Over https the page never receives the proxy's message."""
    web["/"] = Answer(status=302, headers={"Location": f"{origin}/start"})
    with pytest.raises(ResetFailed) as failed:
        await environment.reset(TASK)
    assert str(failed.value).count(f"--allow {origin}") == 1 and f"no rule allows {origin}" in str(failed.value)


async def test_restoring_sends_nothing_again(environment: OpenEnvironment, web: Web, tmp_path: Path) -> None:
    await environment.reset(TASK)
    await submit(environment)
    await environment.save_state(tmp_path / "state")
    assert [r for r in web.requests if r[0] == "POST"] == [("POST", "/sent", b"q=hello")]
    start = await environment.restore_state(TASK, tmp_path / "state", [Click(ref=1)])
    assert start.instruction == "send it"
    seen = await environment.observe()
    assert (seen.url, "thank you" in seen.text) == (web.url("/sent"), True)
    assert sum(method == "POST" for method, _, _ in web.requests) == 1


async def test_cookies_storage_and_tabs_come_back(environment: OpenEnvironment, web: Web, tmp_path: Path) -> None:
    web["/look"] = "<p id=p></p><script>p.textContent = document.cookie + ' ' + localStorage.k</script>"
    await environment.reset(TASK)
    await environment.execute(NewTab())
    await environment.execute(Goto(url=web.url("/look")))
    await environment.execute(FocusTab(index=0))
    await environment.save_state(tmp_path / "state")
    await environment.restore_state(TASK, tmp_path / "state", [])
    tabs = (await environment.observe()).tabs
    assert [(tab.url, tab.active) for tab in tabs] == [(web.url(), True), (web.url("/look"), False)]
    await environment.execute(FocusTab(index=1))
    assert "c=1 v" in (await environment.observe()).text


async def test_where_no_page_was_left_who_was_logged_in_still_is(
    environment: OpenEnvironment, web: Web, tmp_path: Path
) -> None:
    """A page that hung is replaced by a blank one, whose address is not restored."""
    web["/look"] = "<p id=p></p><script>p.textContent = document.cookie + ' ' + localStorage.k</script>"
    await environment.reset(TASK)
    await environment.save_state(tmp_path / "state")
    (tmp_path / "state" / "tabs.json").write_text('{"urls": [], "active": 0}')
    await environment.restore_state(TASK, tmp_path / "state", [])
    assert (await environment.observe()).url == web.url()
    await environment.execute(Goto(url=web.url("/look")))
    assert "c=1 v" in (await environment.observe()).text


async def test_without_a_saved_state_it_starts_anew(environment: OpenEnvironment, web: Web, tmp_path: Path) -> None:
    await environment.restore_state(TASK, tmp_path / "nothing", [])
    assert (await environment.observe()).url == web.url()


async def test_state_is_written_only_when_it_changed(environment: OpenEnvironment, tmp_path: Path) -> None:
    await environment.reset(TASK)
    await environment.save_state(tmp_path)
    before = files(tmp_path)
    assert set(before) == {"storage.json", "tabs.json"}
    assert all(stat.st_mode & 0o077 == 0 for stat in before.values()), "cookies are for their owner's eyes only"
    await environment.save_state(tmp_path)
    after = files(tmp_path)
    assert all(after[name].st_mtime_ns == stat.st_mtime_ns for name, stat in before.items())


def files(folder: Path) -> dict[str, os.stat_result]:
    return {path.name: path.stat() for path in folder.iterdir()}


async def test_a_secret_reaches_its_origin_and_nothing_else(guarded: Chromium, web: Web, tmp_path: Path) -> None:
    environment = await make(guarded, web, tmp_path, "PASSWORD=env:PW")
    web["/sent"] = "<p>thank you</p>"
    web["/"] = """<form action=/sent method=post><input name=pw aria-label=Q><button>Send</button></form>
        <p id=echo></p><script>document.querySelector('input').oninput = e => {
          echo.textContent = localStorage.pw = document.title = e.target.value;
          document.cookie = 'pw=' + e.target.value;
        }</script>"""
    await environment.reset(TASK)
    seen = await environment.observe()
    typed = await environment.execute(Type(ref=ref_of(seen, "Q"), text="<secret>PASSWORD</secret>"))
    assert typed.status is Status.OK, typed
    echoed = await environment.observe(screenshot=True)
    assert "<secret>PASSWORD</secret>" in echoed.text
    assert echoed.screenshot is None and "screenshot" in echoed.note
    await environment.save_state(tmp_path / "state")
    sent = await environment.execute(Click(ref=ref_of(echoed, "Send")))
    assert [body for method, _, body in web.requests if method == "POST"] == [f"pw={SECRET}".encode()]
    stored = [(tmp_path / "state" / name).read_text() for name in files(tmp_path / "state")]
    for text in (typed.model_dump_json(), sent.model_dump_json(), repr(echoed), *stored):
        assert SECRET not in text
    await environment.close()


async def test_a_secret_is_refused_elsewhere(guarded: Chromium, web: Web, tmp_path: Path) -> None:
    environment = await make(guarded, web, tmp_path, "PASSWORD=env:PW@https://bank.example")
    web["/"] = "<input id=q aria-label=Q>"
    await environment.reset(TASK)
    ref = ref_of(await environment.observe(), "Q")
    refused = await environment.execute(Type(ref=ref, text="<secret>PASSWORD</secret>"))
    assert refused.status is Status.BLOCKED and "bank.example" in refused.message
    assert await environment.session.page.evaluate("q.value") == ""
    await environment.close()


async def test_a_browser_that_dies_is_replaced(web: Web, tmp_path: Path) -> None:
    web["/"], web["/next"] = FORM, "<p>next page</p>"
    async with Chromium.launch() as chromium:
        environment = await make(chromium, web, tmp_path)
        await environment.reset(TASK)
        await environment.execute(Goto(url=web.url("/next")))
        await environment.save_state(tmp_path / "state")
        kill(belonging(str(chromium.home)))
        assert (await environment.execute(Goto(url=web.url()))).status in (Status.CRASHED, Status.FAILED)
        assert "next page" in (await environment.observe()).text
        await environment.close()


async def test_a_file_is_no_page_to_start_at(guarded: Chromium, web: Web, tmp_path: Path) -> None:
    headers = {"Content-Type": "application/zip"}
    web["/f.zip"] = Answer(b"x" * 20_000, headers=headers, pause_s=HANG_S)
    environment = await OpenTaskSuite(guarded, tmp_path, QUICK, instruction="x", url=web.url("/f.zip")).environment()
    with pytest.raises(ResetFailed, match=r"f\.zip is a file, not a page"):
        await environment.reset(TASK)
    with Bound(0.0, 5.0):
        await environment.close()  # the file is not waited for


async def test_what_cannot_be_opened_is_one_line(guarded: Chromium, tmp_path: Path) -> None:
    world = OpenTaskSuite(guarded, tmp_path, QUICK, instruction="x", url="http://127.0.0.1:1234/")
    environment = await world.environment()
    with pytest.raises(ResetFailed, match=r"127\.0\.0\.1:1234") as caught:
        await environment.reset(TASK)
    assert "\n" not in str(caught.value)
    await environment.close()
    for url, instruction in (("file:///etc/passwd", "x"), ("nonsense", "x"), ("http://a.b/", " ")):
        with pytest.raises(BadInput):
            OpenTaskSuite(guarded, tmp_path, QUICK, instruction=instruction, url=url)
    (tmp_path / "bad.json").write_text(json.dumps([1]))
    bad = QUICK.model_copy(update={"storage_state": tmp_path / "bad.json"})
    with pytest.raises(BadInput, match=r"bad\.json"):
        await (
            await OpenTaskSuite(guarded, tmp_path, bad, instruction="x", url="http://127.0.0.1:1234/").environment()
        ).reset(TASK)


async def test_a_checker_of_the_user_scores_the_answer_and_the_page(
    guarded: Chromium, web: Web, tmp_path: Path
) -> None:
    async def check(answer: str | None, environment: Environment) -> Score:
        met = answer == "sent" and "thank you" in (await environment.observe()).text
        return Score(status="success" if met else "failure", reward=float(met), evidence="")

    web["/"], web["/sent"] = FORM, "<p>thank you</p>"
    world = OpenTaskSuite(guarded, tmp_path, QUICK, instruction="send it", url=web.url(), checker=check)
    assert [info.has_checker for info in world.tasks()] == [True]
    environment = await world.environment()
    await environment.reset(TASK)
    early = await environment.score("sent")
    await submit(environment)
    late, unanswered = await environment.score("sent"), await environment.score(None)
    await environment.close()
    assert [score and score.status for score in (early, late, unanswered)] == ["failure", "success", "failure"]
