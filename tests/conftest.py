"""Fixtures of the browser tests: one real Chromium for the session, a fresh page and a local site for each test."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType

import hypothesis  # its plugin would load it inside a report hook, where CPython 3.11's ast.parse may fail
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from envs.browser.chromium import ONE_RENDERER, Chromium, find_chromium, new_home, write_guard
from tests.browsers import VARIABLE, choose_browser, whole_browser
from tests.timing import HANG_S

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
"""PyTorch's threads sleep while they wait; read when PyTorch is loaded. By default they wait in a loop, and with two
threads in each of three workers on two cores training tests took five times the CPU time."""
_STATE = tempfile.mkdtemp(prefix="mira-state-")
os.environ["XDG_STATE_HOME"] = _STATE
"""The key that marks runs is the tests' own, in the processes that they start as well."""
atexit.register(shutil.rmtree, _STATE, ignore_errors=True)

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--site-per-process",
    ONE_RENDERER,
]

hypothesis.settings.register_profile(
    "busy machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("busy machine")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Chooses the browser. PyTorch computes in one thread, whatever the test before has set."""
    choose_browser(item.path)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a Chromium of the session run in the session's event loop.

    Files with slow tests come first, then those with many tests: with `--no-loadscope-reorder` no worker is left with a
    long file at the end.
    """
    for item in items:
        if {"chromium", "shared_chromium"} & {*getattr(item, "fixturenames", ())} and inspect.iscoroutinefunction(
            getattr(item, "function", None)
        ):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in slow, -tests[item.path]))


class Site:
    """A web server on loopback: `site.pages["/x"] = html`, then `site.url("/x")`.

    It answers under two names, 127.0.0.1 and localhost, which are two sites to the browser.
    """

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.requests: list[str] = []
        """Paths asked for, in order."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                outer.requests.append(self.path)
                body = outer.pages.get(path)
                self.send_response(200 if body is not None else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write((body or "not found").encode("utf-8", "surrogatepass"))

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        self.port = self._server.server_port

    def url(self, path: str = "/", *, host: str = "127.0.0.1") -> str:
        """The address of a page; `host="localhost"` is another site to the browser."""
        return f"http://{host}:{self.port}{path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@pytest.fixture
def site() -> Iterator[Site]:
    served = Site()
    yield served
    served.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """A headless Chromium shared by the session; tests must not close it."""
    async with async_playwright() as playwright:
        with whole_browser():
            guard = write_guard(new_home(), find_chromium(playwright.chromium.executable_path))
        browser = await playwright.chromium.launch(executable_path=guard, args=FLAGS)
        yield browser
        await asyncio.wait_for(browser.close(), HANG_S)


@pytest_asyncio.fixture(loop_scope="session")
async def page(chromium: Browser) -> AsyncIterator[Page]:
    """A page in a context of its own."""
    context = await chromium.new_context(viewport={"width": 1280, "height": 800})
    yield await context.new_page()
    await asyncio.wait_for(context.close(), HANG_S)


Kept = tuple[bool, str | None]
"""A browser by whether it accepts the proxy's certificates, and by MIRA_CHROMIUM."""


class KeptChromium(Chromium):
    """Stays open after its `async with` block."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kept_chromiums() -> AsyncIterator[dict[Kept, KeptChromium]]:
    """Closed with the session."""
    kept: dict[Kept, KeptChromium] = {}
    yield kept
    for chromium in kept.values():
        await chromium.close()


@pytest.fixture
def shared_chromium(
    request: pytest.FixtureRequest, kept_chromiums: dict[Kept, KeptChromium], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of the test play in a Chromium of the session, each in contexts of its own.

    Starting a browser costs more CPU time than such a run. Such a test runs in the session's event loop.
    """

    def launch(*, headed: bool = False, own_tls: bool = False) -> Chromium:
        assert not headed
        return kept_chromiums.setdefault((own_tls, os.environ.get(VARIABLE)), KeptChromium(own_tls=own_tls))

    if inspect.iscoroutinefunction(request.function):
        monkeypatch.setattr(Chromium, "launch", launch)
