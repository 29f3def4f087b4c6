"""Renders pages of templates in Chromium: one renderer for each worker, with a browser context for each view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.parse import quote, unquote

from envs.browser.chromium import Chromium
from envs.browser.session import BrowserSession
from envs.core.actions import Goto
from envs.core.errors import EnvError
from envs.core.settings import ObserveSettings, SessionSettings, Viewport
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.suites.miniwob.harness import HIDDEN, Harness
from envs.suites.miniwob.pages import PageServer, html_root
from training.grounding.controls import Control
from training.grounding.layouts import generate
from training.grounding.shots import Shot, take
from training.grounding.templates import MINIWOB_SIDE, TRAINING_SEED, Source, Template, ViewSize

_POLL_S: Final = 0.05


class Page(NamedTuple):
    """One page to be rendered."""

    template: Template
    size: ViewSize
    variant: int
    """Content of the page: another one has other words, and another theme if the page is generated."""

    @property
    def id(self) -> str:
        """A name for files."""
        return f"{self.template.source}-{quote(self.template.page, safe='')}-{self.size}-{self.variant}"


class LayoutServer:
    """Serves generated pages on loopback, in a daemon thread, within `with`."""

    def __init__(self, seed: int) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _, number, variant = unquote(self.path).split("/", 2) if self.path.count("/") > 1 else ("", "", "")
                body = generate(seed, int(number), variant).html.encode() if number.isdecimal() else b""
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Logs nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(_POLL_S,), daemon=True)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"

    def url(self, number: str, variant: str) -> str:
        return f"{self.origin}/{number}/{quote(variant, safe='')}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Servers(NamedTuple):
    """What serves the pages; each is there if its source is asked for."""

    layouts: LayoutServer | None
    miniwob: PageServer | None
    sites: Mapping[str, tuple[str, int]]
    """Address of each copy of a site by its origin in the browser."""

    @property
    def origins(self) -> Sequence[str]:
        return [each.origin for each in (self.layouts, self.miniwob) if each is not None] + list(self.sites)


class Renderer:
    """Renders one page at a time, within `async with`."""

    def __init__(self, chromium: Chromium, servers: Servers, folder: Path, seed: int) -> None:
        """*folder* is for downloads, which the pages do not start. *seed*: of the generated pages."""
        self._chromium = chromium
        self._servers = servers
        self._folder = folder
        self._seed = seed
        self._proxy: AllowlistProxy | None = None
        self._sessions: dict[tuple[Source, ViewSize], BrowserSession] = {}

    async def __aenter__(self) -> Self:
        self._proxy = await AllowlistProxy(Origins.parse(self._servers.origins)).start()
        self._proxy.routes = dict(self._servers.sites)
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in self._sessions.values():
            await session.close()
        if self._proxy is not None:
            await self._proxy.close()

    async def render(self, page: Page) -> Shot:
        """Takes the picture of *page*. Raises EnvError if it cannot be loaded or observed."""
        source = page.template.source
        size = page.size.zoomed(MINIWOB_SIDE) if source == "miniwob" else page.size
        session = await self._session(source, size)
        try:
            known = await self._load(session, page)
            return await take(session, known, size.scale)
        except BaseException:
            self._sessions.pop((source, size))  # it may hang
            await session.close()
            raise

    async def _load(self, session: BrowserSession, page: Page) -> Sequence[Control] | None:
        """Loads *page*; returns its controls if they are known."""
        template = page.template
        match template.source:
            case "generated":
                assert self._servers.layouts is not None
                variant = f"{page.variant} {page.size}"
                await _open(session, self._servers.layouts.url(template.page, variant))
                return generate(self._seed, int(template.page), variant).controls
            case "miniwob":
                assert self._servers.miniwob is not None
                harness = Harness(session.page, self._servers.miniwob)
                await harness.start(template.page, TRAINING_SEED + page.variant + 997 * self._seed)
                await session.page.mouse.move(0, 0)
                return None
            case "sites":
                await _open(session, template.page)
                return None

    async def _session(self, source: Source, size: ViewSize) -> BrowserSession:
        if (source, size) not in self._sessions:
            assert self._proxy is not None
            observe = ObserveSettings(
                max_chars=200_000, collapse_rows=10_000, skip=HIDDEN if source == "miniwob" else "", timeout_s=20
            )
            view = Viewport(width=size.width, height=size.height)
            settings = SessionSettings(viewport=view, observe=observe)
            self._sessions[source, size] = await self._chromium.session(
                settings, self._proxy, self._folder, device_scale=size.scale
            )
        return self._sessions[source, size]


async def _open(session: BrowserSession, url: str) -> None:
    result = await session.execute(Goto(url=url))
    if not result.ok:
        raise EnvError(f"{url} does not open: {result.message}")


def miniwob_server() -> PageServer:
    """A server of the installed package's pages. Raises BadInput without the package."""
    return PageServer(html_root())
