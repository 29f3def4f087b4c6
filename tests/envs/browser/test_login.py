"""The window in which a person logs in; here it has no window, and the test is the person."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from playwright.async_api import Browser

from agent.run.runner import run_task
from envs.browser.login import all_closed, state_after_login
from envs.core.actions import Stop
from tests.agent.shop import scripted
from tests.conftest import Site
from tests.mira_command import mira
from tests.timing import HANG_S, until_async

LOGIN = """<!doctype html><title>Login</title><script>
document.cookie = 'session=4711'; localStorage.setItem('theme', 'dark'); %s</script>"""


@pytest.mark.browser
async def test_the_state_is_read_when_the_person_is_done_and_a_run_starts_with_it(site: Site, tmp_path: Path) -> None:
    site.pages["/login"] = LOGIN % "fetch('/logged-in')"
    site.pages["/"] = "<!doctype html><script>document.title = document.cookie</script>"

    async def done() -> None:
        assert await until_async(lambda: "/logged-in" in site.requests)

    state = await state_after_login(site.url("/login"), done, headed=False)
    assert [(cookie["name"], cookie["value"]) for cookie in state["cookies"]] == [("session", "4711")]
    assert state["origins"][0]["localStorage"] == [{"name": "theme", "value": "dark"}]
    (tmp_path / "login.json").write_text(json.dumps(state))
    session = {"storage_state": tmp_path / "login.json"}
    episode = await run_task("Look", site.url("/"), policy=scripted([Stop()]), out=tmp_path, session=session)
    assert "session=4711" in episode.trace_path.read_text()


@pytest.mark.browser
async def test_the_state_is_there_when_the_last_tab_was_closed(site: Site, chromium: Browser) -> None:
    site.pages["/login"] = LOGIN % ""
    context = await chromium.new_context()
    closed = all_closed(context)
    first, second = await context.new_page(), await context.new_page()
    await first.goto(site.url("/login"))
    await first.close()
    assert not closed.is_set()
    await second.close()
    await asyncio.wait_for(closed.wait(), HANG_S)
    assert (await context.storage_state()).get("cookies")
    await context.close()


@pytest.mark.browser
async def test_an_address_that_does_not_open_stays_for_the_person_to_correct(site: Site) -> None:
    site.close()
    done = asyncio.Event()
    done.set()
    state = await state_after_login(site.url("/login"), done.wait, headed=False)
    assert state == {"cookies": [], "origins": []}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["shop.example"], "write https://shop.example", id="no address"),
        pytest.param(["https://shop.example"], "--headed needs a display", id="no display"),
        pytest.param(["https://shop.example", "-o", "."], "is a folder: name a file", id="folder"),
    ],
)
def test_wrong_input_is_one_line(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    assert mira(monkeypatch, "login", *words) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.err.count("\n") == 1 and not printed.out
    assert not list(tmp_path.iterdir())
