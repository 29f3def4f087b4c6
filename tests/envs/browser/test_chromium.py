"""The browser is found and started, and no process remains, however its owner ends."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from playwright.async_api import Browser, Page

from envs.browser import chromium_guard
from envs.browser.chromium import Chromium, find_chromium, launch_failure
from envs.core.errors import BrowserMissing
from envs.core.settings import SessionSettings
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from tests.conftest import Site
from tests.envs.browser.processes import Living, all_ended, all_gone, belonging, kill
from tests.timing import until_async

pytestmark = pytest.mark.browser

OWNER = """
import asyncio, sys
from envs.browser.chromium import Chromium

async def main():
    async with Chromium.launch() as chromium:
        print(chromium.home, flush=True)
        if sys.argv[1:] == ["raise"]:
            raise RuntimeError("as planned")
        await asyncio.sleep(600)

asyncio.run(main())
"""


def start_owner(*argv: str) -> tuple[subprocess.Popen[str], str]:
    """A process that owns a browser, and the browser's HOME."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, *argv], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert owner.stdout is not None
    return owner, owner.stdout.readline().strip()


def test_a_path_that_is_no_browser_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MIRA_CHROMIUM", str(tmp_path / "nothing"))
    with pytest.raises(BrowserMissing, match="not an executable file") as caught:
        find_chromium()
    assert "\n" not in str(caught.value)


def test_no_browser_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MIRA_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrowserMissing, match="playwright install chromium"):
        find_chromium(str(tmp_path / "not-downloaded"))


async def test_a_program_that_is_no_chromium_is_one_line_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "fake"
    fake.write_text("#!/bin/sh\necho 'error while loading shared libraries: libx.so' >&2\nexit 127\n")
    fake.chmod(0o755)
    monkeypatch.setenv("MIRA_CHROMIUM", str(fake))
    chromium = Chromium()
    with pytest.raises(BrowserMissing, match=r"libx\.so") as caught:
        await chromium.start()
    assert "\n" not in str(caught.value)
    assert await all_ended(str(fake)), "the watchdog, too"


async def test_close_leaves_no_process_and_no_folder() -> None:
    async with Chromium.launch() as chromium:
        home = str(chromium.home)
        assert chromium.alive
        processes = belonging(home)
        assert any("chromium_guard.py" in " ".join(one.words) for one in processes), "the watchdog watches"
        profile = profile_of(processes)
        assert profile.exists()
    assert not chromium.alive
    assert await all_gone(home, profile)


async def test_an_exception_of_the_owner_leaves_nothing() -> None:
    owner, home = start_owner("raise")
    owner.wait(20)
    assert owner.returncode == 1
    assert await all_gone(home)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_killed_owner_leaves_nothing(number: signal.Signals) -> None:
    owner, home = start_owner()
    profile = profile_of(belonging(home))
    owner.send_signal(number)
    owner.wait(10)
    assert await all_gone(home, profile)


async def test_the_watchdog_alone_is_enough() -> None:
    """Playwright's driver also ends the browser when its owner dies, so the test stops the driver."""
    owner, home = start_owner()
    profile = profile_of(belonging(home))
    drivers = [p for p in psutil.Process(owner.pid).children() if "node" in p.name()]
    assert drivers
    try:
        for driver in drivers:
            driver.suspend()
        owner.kill()
        owner.wait(10)
        assert await all_gone(home, profile)
    finally:
        for driver in drivers:
            driver.kill()


async def test_a_browser_that_died_is_noticed_and_started_again() -> None:
    async with Chromium.launch() as chromium:
        first = str(chromium.home)
        living = [(one, " ".join(one.words)) for one in belonging(first)]
        kill(one for one, line in living if "--type=" not in line and "chromium_guard" not in line)
        assert await all_gone(first)
        assert not chromium.alive
        await chromium.start()
        assert chromium.alive
        second = str(chromium.home)
    assert second != first
    assert await all_gone(second)


async def test_a_driver_that_died_is_noticed_and_the_browser_started_again(tmp_path: Path) -> None:
    """Playwright reports that a browser ended, but not that its own driver did."""
    async with Chromium.launch() as chromium, Chromium.launch() as other, AllowlistProxy(Origins.parse([])) as boundary:
        first = str(chromium.home)
        session = await chromium.session(SessionSettings(), boundary, tmp_path)
        parents = {one.process.ppid() for one in belonging(first)}
        (driver,) = parents & {child.pid for child in psutil.Process().children()}
        psutil.Process(driver).kill()
        assert await until_async(lambda: not chromium.alive and not session.alive)
        assert other.alive, "each browser has its own driver"
        await session.close()
        again = await chromium.session(SessionSettings(), boundary, tmp_path)
        assert chromium.alive and again.alive
        second = str(chromium.home)
        await again.close()
    assert second != first
    assert await all_gone(first) and await all_gone(second)


async def test_no_debugging_port_is_open() -> None:
    async with Chromium.launch() as chromium:
        looked_at = 0
        for process, words in belonging(str(chromium.home)):
            with contextlib.suppress(psutil.NoSuchProcess):
                listening = [c for c in process.net_connections() if c.status == psutil.CONN_LISTEN]
                assert not listening, words[:2]
                looked_at += 1
        assert looked_at


def profile_of(processes: list[Living]) -> Path:
    words = [word for process in processes for word in process.words if word.startswith("--user-data-dir=")]
    assert words, "the browser runs with a profile of its own"
    return Path(words[0].partition("=")[2])


def test_lists_of_features_and_settings_become_one_switch() -> None:
    """Chromium uses only the last of two switches and would ignore Playwright's."""
    given = ["--disable-features=A,B", "--x", "--enable-features=C", "--disable-features=D", "--proxy=a=b"]
    given += ["--blink-settings=a=1", "--blink-settings=b=2,c=3"]
    lists = ["--disable-features=A,B,D", "--enable-features=C", "--blink-settings=a=1,b=2,c=3"]
    assert chromium_guard.joined(given) == [*lists, "--x", "--proxy=a=b"]


async def test_a_page_has_one_renderer(chromium: Browser, page: Page) -> None:
    """Chromium's own pages, those of the hidden address bar, would be targets of the type `browser_ui`."""
    session = await chromium.new_browser_cdp_session()
    targets = (await session.send("Target.getTargets", {"filter": [{}]}))["targetInfos"]
    await session.detach()
    assert page.url == "about:blank"
    assert {"page"} <= {target["type"] for target in targets} <= {"browser", "page", "tab"}, targets


async def test_a_site_has_one_renderer(chromium: Browser, site: Site) -> None:
    """Chromium would keep a spare one for the next site."""
    session = await chromium.new_browser_cdp_session()

    async def renderers() -> set[int]:
        processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
        return {process["id"] for process in processes if process["type"] == "renderer"}

    before = await renderers()
    context = await chromium.new_context()
    page = await context.new_page()
    for _ in range(2):
        await page.goto(site.url())
    assert len(await renderers() - before) == 1
    await context.close()
    await session.detach()


WARNING = "[pid=7][err] /usr/bin/chromium: 9: [: 25276502016: unexpected operator"
ROOT = "[pid=7][err] [7:7:1129/163257.05:ERROR:zygote_host_impl_linux.cc:103] Running as root without --no-sandbox"
NO_SANDBOX = "[pid=7][err] [7:7:1129/163257.05:FATAL:zygote_host_impl_linux.cc:127] No usable sandbox!"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((WARNING, ROOT), ROOT),
        ((WARNING, ROOT, NO_SANDBOX), NO_SANDBOX),
        ((WARNING,), WARNING),
        ((), "BrowserType.launch: Target closed"),
    ],
)
def test_the_reason_is_chromiums_own_error(lines: tuple[str, ...], reason: str) -> None:
    """Symptom: a warning of the distribution's start script hid that there is no sandbox."""
    report = "\n".join(("BrowserType.launch: Target closed", "Browser logs:", *(f"  - {line}" for line in lines)))
    assert launch_failure(report).removeprefix("- ") == reason
