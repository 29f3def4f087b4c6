"""Downloads that are too large are cancelled while they stream, one by one and over a whole run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from envs.browser.session import BrowserSession
from envs.core.actions import Wait
from tests.envs.browser.browsing import Opener, click, visit
from tests.envs.browser.web import Answer, Web
from tests.timing import HANG_S

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
CHUNK = 4_000_000
LIMIT = 1_000_000


class Endless(BaseHTTPRequestHandler):
    """Sends one chunk of a file without a declared length, then waits until the browser hangs up."""

    hung_up: threading.Event

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Disposition", "attachment; filename=endless.bin")
        self.end_headers()
        self.connection.settimeout(HANG_S)
        try:
            self.wfile.write(b"x" * CHUNK)  # fails if the browser hangs up before it has read the whole chunk
            if self.connection.recv(1) == b"":
                self.hung_up.set()
        except ConnectionError:
            self.hung_up.set()
        except TimeoutError:
            return

    def log_message(self, format: str, *args: object) -> None:
        """Keeps the test output quiet."""


@pytest.fixture
def endless() -> Iterator[tuple[int, threading.Event]]:
    hung_up = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Endless,), {"hung_up": hung_up}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server.server_port, hung_up
    server.shutdown()
    server.server_close()


async def messages(session: BrowserSession, name: str, expected: str) -> str:
    """Returns the messages of the click and of later waits, until they contain *expected*."""
    reported = (await click(session, name)).message
    for _ in range(30):
        if expected in reported:
            break
        reported += "; " + (await session.execute(Wait())).message
    return reported


async def test_a_download_without_a_declared_length_is_cancelled_while_it_streams(
    web: Web, endless: tuple[int, threading.Event], opener: Opener, tmp_path: Path
) -> None:
    port, hung_up = endless
    web["/"] = f"<a href=http://127.0.0.1:{port}/ >Endless</a>"
    session = await opener(max_download_bytes=LIMIT, ports=(port,))
    await visit(session, web.url())
    assert f" bytes, the limit is {LIMIT}" in await messages(session, "Endless", "refused")
    # In a thread: the proxy, which closes the connection to the server, runs in this event loop.
    assert await asyncio.to_thread(hung_up.wait, HANG_S), "the browser continued the download"
    assert not (tmp_path / "run" / "downloads").exists()


async def test_a_declared_length_over_the_limit_is_refused_at_the_start(web: Web, opener: Opener) -> None:
    web["/"] = "<a href=/big>Big</a>"
    web["/big"] = Answer(b"x" * 5_000_000, headers={"Content-Type": "application/zip"}, pause_s=HANG_S)
    session = await opener(max_download_bytes=LIMIT)
    await visit(session, web.url())
    assert f"5000000 bytes, the limit is {LIMIT}" in await messages(session, "Big", "refused")


async def test_the_downloads_of_a_run_are_bounded_together(web: Web, opener: Opener, tmp_path: Path) -> None:
    web["/"] = "<a href=/file>File</a>"
    web["/file"] = Answer(b"x" * 400_000, headers={"Content-Type": "application/zip"})
    session = await opener(max_run_download_bytes=LIMIT)
    await visit(session, web.url())
    home = tmp_path / "run" / "downloads"
    for kept in (1, 2):
        while len(list(home.iterdir()) if home.exists() else []) < kept:
            await click(session, "File")
            await session.downloads.finish(HANG_S)
    assert "1200000 bytes in this run, the limit is 1000000" in await messages(session, "File", "refused")
    assert sum(file.stat().st_size for file in home.iterdir()) == 800_000


async def test_the_limit_of_one_session_is_not_that_of_another(web: Web, opener: Opener) -> None:
    web["/"] = "<a href=/file>File</a>"
    web["/file"] = Answer(b"x" * 400_000, headers={"Content-Type": "application/zip"})
    small, large = await opener(max_download_bytes=1000), await opener()
    await visit(small, web.url())
    await visit(large, web.url())
    assert "refused" in await messages(small, "File", "refused")
    result = await click(large, "File")
    kept = result.downloads or (await large.execute(Wait())).downloads
    assert [one.bytes for one in kept] == [400_000]
