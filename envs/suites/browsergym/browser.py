"""Starts a Chromium for two programs, with a debugging port on loopback and all requests through a proxy."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from envs.browser.chromium import SWITCHES, find_chromium, guard_command, launch_s, new_home, not_started
from envs.core.errors import BrowserMissing, BrowserNotStarted
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.tls_termination import proxy_certificate

QUIET = (
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-component-extensions-with-background-pages",
    "--disable-features=AutofillServerCommunication,MediaRouter,OptimizationHints,Translate",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--password-store=basic",
    "--use-mock-keychain",
)
"""Switches that Playwright uses for browsers that it starts: they disable the browser's own requests."""
END_S = 5.0
POLL_S = 0.02


class SharedChromium:
    """A running Chromium. Create it with :meth:`start` and `end` it; a guard process ends it with this process.

    Accepted trade-off: other programs of this machine can access the debugging port while it runs; pages cannot.
    """

    def __init__(self, process: asyncio.subprocess.Process, home: Path, endpoint: str) -> None:
        self.endpoint = endpoint
        """The address for `connect_over_cdp`."""
        self._process = process
        self._home = home

    @classmethod
    async def start(cls, proxy: AllowlistProxy) -> SharedChromium:
        """Starts Chromium. Raises BrowserMissing and BrowserNotStarted."""
        chromium = find_chromium()
        home = new_home("mira-shared-")
        process = await asyncio.create_subprocess_exec(
            *guard_command(home, chromium),
            *_switches(home, proxy),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(launch_s()):
                port = await _port(home / "profile" / "DevToolsActivePort", process)
        except TimeoutError:
            await _end(process, home)
            raise BrowserNotStarted(not_started(f"Chromium at {chromium}", launch_s())) from None
        except BrowserMissing:
            await _end(process, home)
            raise
        return cls(process, home, f"http://127.0.0.1:{port}")

    async def end(self) -> None:
        """Safe to call twice."""
        await _end(self._process, self._home)


def _switches(home: Path, proxy: AllowlistProxy) -> list[str]:
    switches = [f"--user-data-dir={home / 'profile'}", "--remote-debugging-port=0", "--no-startup-window"]
    switches += [*QUIET, f"--proxy-server={proxy.server}", "--headless=new", "--hide-scrollbars"]
    switches += [proxy_certificate().switch] if proxy.origins.has_subresources else []
    return [*SWITCHES, *switches, *(["--no-sandbox"] if os.geteuid() == 0 else [])]


async def _port(file: Path, process: asyncio.subprocess.Process) -> int:
    """Waits for the port, which Chromium writes to *file* when it listens."""
    while True:
        port = _written_port(file)
        if port:
            return port
        if process.returncode is not None:
            raise BrowserMissing(f"Chromium ended at its start with code {process.returncode}")
        await asyncio.sleep(POLL_S)


def _written_port(file: Path) -> int:
    """The port; 0 until both lines of *file*, port and path, are written."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return int(lines[0]) if len(lines) >= 2 else 0


async def _end(process: asyncio.subprocess.Process, home: Path) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(END_S):
            await process.wait()
    shutil.rmtree(home, ignore_errors=True)  # the guard does the same
