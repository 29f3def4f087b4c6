"""Finds, starts and stops Chromium: one browser per process with many isolated contexts.

Guarantees:
  - No process or file remains after `close`, an exception, SIGTERM or SIGKILL of the owner, or a
    crash of the browser (see :mod:`envs.browser.chromium_guard`).
  - No debugging port is open: Playwright controls the browser through a pipe.
  - All traffic goes through the proxy of its context: the browser-wide proxy refuses connections,
    the browser resolves no names, QUIC and direct UDP are off.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from playwright.async_api import Browser, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from envs.browser import chromium_guard
from envs.browser.driver_process import DriverProcess, driver_of, drivers
from envs.browser.session import BrowserSession
from envs.core.errors import BadInput, BrowserMissing, BrowserNotStarted
from envs.core.settings import SessionSettings
from envs.core.wait_notices import waiting_for
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.secrets import NO_SECRETS, SecretVault
from envs.security.tls_termination import proxy_certificate

__all__ = ["Chromium", "find_chromium"]

LAUNCH_S = 60.0
"""Timeout for the start of the driver, and of Chromium; MIRA_LAUNCH_S overrides it."""
CLOSE_S = 5.0
POLL_S = 0.02
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NOWHERE = "http://127.0.0.1:9"
"""Proxy for traffic outside sessions (the discard port, where connections are refused at once)."""

ONE_RENDERER = "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,SpareRendererForSitePerProcess"
"""Without it each window has two more renderers: for the pop-ups of a hidden address bar, a third of the window's CPU
time, and a spare one for the next site, a tenth."""

SWITCHES = (
    "--disable-quic",  # UDP would bypass the proxy
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # the proxy resolves names, never the browser
    "--dns-prefetch-disable",
    "--proxy-bypass-list=<-loopback>",  # loopback addresses also use the proxy
    "--no-pings",
    "--blink-settings=hyperlinkAuditingEnabled=false",  # the same for the headless shell
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-crash-reporter",
    "--disable-gpu",
    "--disable-smooth-scrolling",
    "--disable-notifications",
    ONE_RENDERER,
    "--disable-features=AutofillServerCommunication",  # sends every form to a server
)
UNWANTED = ("--disable-popup-blocking", "--enable-unsafe-swiftshader")
"""Playwright's default switches that are removed: pages may open windows only after a user gesture."""


def find_chromium(playwright_path: str | None = None) -> Path:
    """Returns the Chromium executable: `MIRA_CHROMIUM`, Playwright's own, else one on PATH. Raises BrowserMissing."""
    named = os.environ.get("MIRA_CHROMIUM")
    if named:
        if os.access(named, os.X_OK) and Path(named).is_file():
            return Path(named).absolute()
        raise BrowserMissing(
            f"MIRA_CHROMIUM names {named}, which is not an executable file: set it to the path of Chromium, or unset it"
        )
    if playwright_path and os.access(playwright_path, os.X_OK):
        return Path(playwright_path)
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return Path(path)
    raise BrowserMissing(
        "no Chromium found: run `playwright install chromium` or `apt-get install chromium`, or set MIRA_CHROMIUM"
    )


class Chromium:
    """A running browser. Use as `async with Chromium.launch() as chromium:`."""

    def __init__(self, *, headed: bool = False, own_tls: bool = False) -> None:
        self._headed = headed
        self._own_tls = own_tls
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._home: Path | None = None
        self._driver: DriverProcess | None = None
        self._starting = asyncio.Lock()

    @classmethod
    def launch(cls, *, headed: bool = False, own_tls: bool = False) -> Self:
        """Returns a browser that starts on entering the `async with` block. Entering raises BrowserMissing, or
        BrowserNotStarted if the machine is too busy.

        *own_tls*: the browser accepts the key of :mod:`envs.security.tls_termination`, which is required for
        subresource rules, for holding requests and for searching requests for secrets.
        """
        return cls(headed=headed, own_tls=own_tls)

    @property
    def alive(self) -> bool:
        """Whether the browser runs and Playwright's driver, which controls it, too."""
        driver_ended = self._driver is not None and self._driver.ended
        return self._browser is not None and self._browser.is_connected() and not driver_ended

    @property
    def version(self) -> str:
        """The browser's version, e.g. `130.0.6723.58`; empty if it is not running."""
        return self._browser.version if self._browser else ""

    @property
    def home(self) -> Path | None:
        """The folder for this browser's temporary files; removed when the browser ends."""
        return self._home

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Starts the browser unless it is running."""
        async with self._starting:
            if not self.alive:
                await self.close()
                try:
                    await self._start()
                except BaseException:
                    await self.close()
                    raise

    async def session(
        self,
        settings: SessionSettings,
        boundary: AllowlistProxy,
        folder: Path,
        secrets: SecretVault = NO_SECRETS,
        *,
        device_scale: float = 1.0,
    ) -> BrowserSession:
        """Opens a new isolated context. All of its requests go through the proxy *boundary*, its files into *folder*.
        *device_scale*: pixels of a screenshot per CSS pixel.

        Restarts the browser if it has died; its earlier sessions are lost.
        """
        if boundary.origins.has_subresources and not self._own_tls:
            raise BadInput("rules for subresources need a browser started with own_tls=True")
        if settings.hold and not self._own_tls:
            raise BadInput("requests can be held only in a browser started with own_tls=True")
        boundary.may_read_tls = self._own_tls
        await self.start()
        assert self._browser is not None and self._home is not None
        arriving = self._home / "tmp"
        return await BrowserSession.open(
            self._browser,
            settings,
            boundary,
            folder,
            secrets,
            arriving=arriving,
            device_scale=device_scale,
            driver=self._driver,
        )

    async def close(self) -> None:
        """Ends the browser; safe to call twice. The watchdog kills processes that do not end in time."""
        browser, playwright, home, driver = self._browser, self._playwright, self._home, self._driver
        self._browser = self._playwright = self._home = self._driver = None
        if browser is not None:
            await _within(CLOSE_S, browser.close())
        if playwright is not None:
            await _within(CLOSE_S, playwright.stop())
        if driver is not None:
            driver.close()
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)  # the watchdog also removes it

    async def _start(self) -> None:
        waiting_for("starting Chromium")
        self._playwright = await _start_playwright()
        chromium = find_chromium(self._playwright.chromium.executable_path)
        self._home = new_home()
        guard = write_guard(self._home, chromium)
        try:
            self._browser = await self._playwright.chromium.launch(
                executable_path=guard,
                headless=not self._headed,
                args=[*_switches(self._headed), *([proxy_certificate().switch] if self._own_tls else [])],
                ignore_default_args=list(UNWANTED),
                proxy={"server": NOWHERE},
                chromium_sandbox=os.geteuid() != 0,
                downloads_path=self._home / "tmp",
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=launch_s() * 1000,
            )
            self._driver = driver_of(self._home)
        except PlaywrightTimeout:
            raise BrowserNotStarted(not_started(f"Chromium at {chromium}", launch_s())) from None
        except PlaywrightError as error:
            reason = launch_failure(str(error))
            raise BrowserMissing(f"Chromium at {chromium} does not start: {reason}") from error


def launch_s() -> float:
    """Returns the timeout in seconds for starting the driver, and Chromium. Raises BadInput for an invalid
    MIRA_LAUNCH_S."""
    text = os.environ.get("MIRA_LAUNCH_S", "")
    try:
        seconds = float(text or LAUNCH_S)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86_400:
        raise BadInput(f"MIRA_LAUNCH_S={text!r} is not a number of seconds")
    return seconds


def not_started(program: str, seconds: float) -> str:
    """Returns the message of BrowserNotStarted."""
    return (
        f"{program} did not start within {seconds:g} s: the machine may be busy; try again, with fewer workers or "
        "fewer other programs, or give it longer, for example MIRA_LAUNCH_S=300"
    )


async def _start_playwright() -> Playwright:
    """Starts Playwright's driver. Raises BrowserNotStarted if it times out, BrowserMissing if it exits; the driver is
    then killed."""
    manager, seconds, running = async_playwright(), launch_s(), set(drivers())
    try:
        async with asyncio.timeout(seconds):
            return await manager.start()
    except TimeoutError:
        await _within(CLOSE_S, manager.__aexit__())
        await _end_drivers(set(drivers()) - running)
        raise BrowserNotStarted(not_started("Playwright's driver", seconds)) from None
    except Exception as error:  # Playwright raises a bare Exception if its driver has ended
        reason = launch_failure(str(error))
        raise BrowserMissing(f"Playwright's driver does not start: {reason}; install playwright again") from error


async def _end_drivers(doomed: set[int]) -> None:
    """Kills drivers that have not answered and so cannot be stopped normally. Returns after asyncio has noticed that
    they and their pipes are closed."""
    for driver in doomed:
        with suppress(ProcessLookupError):
            os.kill(driver, signal.SIGKILL)
    for _ in range(int(CLOSE_S / POLL_S)):
        if not _any_left(doomed):
            break
        await asyncio.sleep(POLL_S)
    await asyncio.sleep(POLL_S)


def _any_left(processes: set[int]) -> bool:
    """Whether any of these child processes still exists."""
    return any(Path(f"/proc/{process}").exists() for process in processes)


def _switches(headed: bool) -> list[str]:
    return [*SWITCHES, *([] if headed else ["--headless=new"]), *(["--no-sandbox"] if os.geteuid() == 0 else [])]


def new_home(prefix: str = "mira-chromium-") -> Path:
    """Makes the folder of a browser, with a `tmp` for its files; the guard removes it."""
    home = Path(tempfile.mkdtemp(prefix=prefix))
    (home / "tmp").mkdir()
    return home


def guard_command(home: Path, chromium: Path) -> list[str]:
    """Returns the command that starts *chromium* through this installation's guard, which removes *home* at the end.

    The guard merges lists of features and settings, Playwright's and ours: Chromium alone would use the last one.
    """
    owner = os.getpid()
    guard = [sys.executable, "-IS", chromium_guard.__file__]
    return [*guard, str(owner), chromium_guard.start_time(owner), str(home), str(chromium)]


def write_guard(home: Path, chromium: Path) -> Path:
    """Writes the executable that Playwright starts instead of Chromium: `guard_command` with Playwright's switches."""
    script = home / "chromium"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(guard_command(home, chromium))} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return script


_REPORTED: Final = (":FATAL:", "error while loading", ":ERROR:", "[err]")
"""Marks of lines in a launch report that say why Chromium does not start, the surest first."""


def launch_failure(message: str) -> str:
    """Returns the most informative line of Playwright's long launch report: Chromium's own error before other lines of
    its stderr, such as warnings of a distribution's start script."""
    lines = [line.strip() for line in message.splitlines()]
    for mark in _REPORTED:
        if line := next((line for line in lines if mark in line), ""):
            return line[:300]
    return (lines or ["unknown reason"])[0][:300]


async def _within(seconds: float, call: object) -> None:
    """Awaits *call* for at most *seconds*; ignores errors of a browser that is already dead."""
    assert asyncio.iscoroutine(call)
    try:
        async with asyncio.timeout(seconds):
            await call
    except (PlaywrightError, TimeoutError):
        return
