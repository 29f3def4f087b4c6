"""Finding, starting and ending Chromium: one browser a process, many isolated contexts in it.

Guarantees:
  - Nothing is left behind: not after `close`, an exception, SIGTERM or SIGKILL of the owner, or a
    crash of the browser (see :mod:`envs.browser.chromium_guard`).
  - No debugging port is open: Playwright speaks to the browser through a pipe.
  - What a context does not send through its own proxy goes nowhere: the browser-wide proxy is a
    dead end, names are never resolved in the browser, QUIC and direct UDP are off.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from playwright.async_api import Browser, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from envs.browser import chromium_guard
from envs.browser.session import BrowserSession
from envs.core.errors import BadInput, BrowserMissing, BrowserNotStarted
from envs.core.settings import SessionSettings
from envs.core.wait_notices import waiting_for
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.secrets import NO_SECRETS, SecretVault
from envs.security.tls_termination import own_end

LAUNCH_S = 60.0
"""Longest start of the driver, and of Chromium; MIRA_LAUNCH_S sets another."""
CLOSE_S = 5.0
POLL_S = 0.02
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NOWHERE = "http://127.0.0.1:9"
"""Proxy of everything outside a session (the discard port: connections are refused at once)."""

SWITCHES = (
    "--disable-quic",  # UDP would pass by the proxy
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # the proxy resolves names, never the browser
    "--dns-prefetch-disable",
    "--proxy-bypass-list=<-loopback>",  # loopback too goes through the proxy
    "--no-pings",
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
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",  # two renderers a window, for an address bar unseen
    "--disable-features=AutofillServerCommunication",  # would ask a server about every form
)
UNWANTED = ("--disable-popup-blocking", "--enable-unsafe-swiftshader")
"""Playwright's defaults that we take back: a page opens windows only on a user's gesture, as in a person's browser."""


def find_chromium(playwright_path: str | None = None) -> Path:
    """The Chromium to start: `MIRA_CHROMIUM`, Playwright's own, else one on PATH. Raises BrowserMissing."""
    named = os.environ.get("MIRA_CHROMIUM")
    if named:
        if os.access(named, os.X_OK) and Path(named).is_file():
            return Path(named).absolute()
        raise BrowserMissing(f"MIRA_CHROMIUM names {named}, which is not an executable file")
    if playwright_path and os.access(playwright_path, os.X_OK):
        return Path(playwright_path)
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return Path(found)
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
        self._starting = asyncio.Lock()

    @classmethod
    def launch(cls, *, headed: bool = False, own_tls: bool = False) -> Self:
        """A browser that starts on entering the `async with` block. Entering raises BrowserMissing, and
        BrowserNotStarted where the machine is too busy for it.

        *own_tls*: it accepts the key of :mod:`envs.security.tls_termination`, which rules for subresources need, the
        holding of requests, and the search of requests for secrets.
        """
        return cls(headed=headed, own_tls=own_tls)

    @property
    def alive(self) -> bool:
        return self._browser is not None and self._browser.is_connected()

    @property
    def version(self) -> str:
        """The browser's version, e.g. `130.0.6723.58`; empty when it is not running."""
        return self._browser.version if self._browser else ""

    @property
    def home(self) -> Path | None:
        """The folder of this browser's temporary files; gone with the browser."""
        return self._home

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Starts the browser, or starts it again if it died; does nothing while it lives."""
        async with self._starting:
            if not self.alive:
                await self.close()
                try:
                    await self._start()
                except BaseException:
                    await self.close()
                    raise

    async def session(
        self, settings: SessionSettings, boundary: AllowlistProxy, folder: Path, secrets: SecretVault = NO_SECRETS
    ) -> BrowserSession:
        """A new isolated context whose every request passes *boundary*; its files go below *folder*.

        Starts the browser again if it has died: sessions that lived in it are lost, new ones work.
        """
        if boundary.origins.has_subresources and not self._own_tls:
            raise BadInput("rules for subresources need a browser started with own_tls=True")
        if settings.hold and not self._own_tls:
            raise BadInput("requests can be held only in a browser started with own_tls=True")
        boundary.may_read_tls = self._own_tls
        await self.start()
        assert self._browser is not None and self._home is not None
        arriving = self._home / "tmp"
        return await BrowserSession.open(self._browser, settings, boundary, folder, secrets, arriving=arriving)

    async def close(self) -> None:
        """Ends the browser; safe to call twice. What does not end in time, the watchdog ends."""
        browser, playwright, home = self._browser, self._playwright, self._home
        self._browser = self._playwright = self._home = None
        if browser is not None:
            await _within(CLOSE_S, browser.close())
        if playwright is not None:
            await _within(CLOSE_S, playwright.stop())
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)  # Chromium ends with its home: the watchdog does the same

    async def _start(self) -> None:
        waiting_for("starting Chromium")
        self._playwright = await _start_playwright()
        chromium = find_chromium(self._playwright.chromium.executable_path)
        self._home = Path(tempfile.mkdtemp(prefix="mira-chromium-"))
        (self._home / "tmp").mkdir()
        guard = _write_guard(self._home, chromium)
        try:
            self._browser = await self._playwright.chromium.launch(
                executable_path=guard,
                headless=not self._headed,
                args=[*_switches(self._headed), *([own_end().switch] if self._own_tls else [])],
                ignore_default_args=list(UNWANTED),
                proxy={"server": NOWHERE},
                chromium_sandbox=os.geteuid() != 0,
                downloads_path=self._home / "tmp",
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
                timeout=launch_s() * 1000,
            )
        except PlaywrightTimeout:
            raise BrowserNotStarted(not_started(f"Chromium at {chromium}", launch_s())) from None
        except PlaywrightError as error:
            reason = _reason(str(error))
            raise BrowserMissing(f"Chromium at {chromium} does not start: {reason}") from error


def launch_s() -> float:
    """Seconds that the driver has to start, and Chromium. Raises BadInput for a MIRA_LAUNCH_S that is no number."""
    text = os.environ.get("MIRA_LAUNCH_S", "")
    try:
        seconds = float(text or LAUNCH_S)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86_400:
        raise BadInput(f"MIRA_LAUNCH_S={text!r} is no number of seconds")
    return seconds


def not_started(what: str, seconds: float) -> str:
    """The message of BrowserNotStarted."""
    return (
        f"{what} did not start within {seconds:g} s: the machine may be busy; try again, with fewer workers or fewer "
        "other programs, or give it longer, for example MIRA_LAUNCH_S=300"
    )


async def _start_playwright() -> Playwright:
    """Raises BrowserNotStarted where the driver does not answer in time, and BrowserMissing where it ends at once; it
    is ended then."""
    manager, seconds, running = async_playwright(), launch_s(), set(_drivers())
    try:
        async with asyncio.timeout(seconds):
            return await manager.start()
    except TimeoutError:
        await _within(CLOSE_S, manager.__aexit__())
        await _end_drivers(set(_drivers()) - running)
        raise BrowserNotStarted(not_started("Playwright's driver", seconds)) from None
    except Exception as error:  # Playwright raises a bare Exception where its driver has ended
        reason = _reason(str(error))
        raise BrowserMissing(f"Playwright's driver does not start: {reason}; install playwright again") from error


async def _end_drivers(drivers: set[int]) -> None:
    """One that has not answered yet does not hear that it is to stop. Returns when asyncio has seen their end, and the
    end of their pipes."""
    for driver in drivers:
        with suppress(ProcessLookupError):
            os.kill(driver, signal.SIGKILL)
    for _ in range(int(CLOSE_S / POLL_S)):
        if not _any_left(drivers):
            break
        await asyncio.sleep(POLL_S)
    await asyncio.sleep(POLL_S)


def _any_left(processes: set[int]) -> bool:
    """Whether any of our children is still to be waited for."""
    return any(Path(f"/proc/{process}").exists() for process in processes)


def _drivers() -> Iterator[int]:
    """Processes of Playwright's drivers that this process has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            parent = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
            if parent == str(os.getpid()) and b"run-driver" in stat.with_name("cmdline").read_bytes().split(b"\0"):
                yield int(stat.parent.name)


def _switches(headed: bool) -> list[str]:
    return [*SWITCHES, *([] if headed else ["--headless=new"]), *(["--no-sandbox"] if os.geteuid() == 0 else [])]


def _write_guard(home: Path, chromium: Path) -> Path:
    """An executable that Playwright takes for Chromium: it runs the guard of this very installation."""
    owner = os.getpid()
    words = [
        sys.executable,
        "-IS",
        chromium_guard.__file__,
        str(owner),
        chromium_guard.start_time(owner),
        str(home),
        str(chromium),
    ]
    script = home / "chromium"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return script


def _reason(message: str) -> str:
    """The one line of Playwright's long launch report that tells a person something."""
    lines = [line.strip() for line in message.splitlines()]
    told = [line for line in lines if "[err]" in line or "error while loading" in line]
    return (told or lines or ["unknown reason"])[0][:300]


async def _within(seconds: float, call: object) -> None:
    """Awaits *call* for at most *seconds*; closing what is already dead is not an error."""
    assert asyncio.iscoroutine(call)
    try:
        async with asyncio.timeout(seconds):
            await call
    except (PlaywrightError, TimeoutError):
        return
