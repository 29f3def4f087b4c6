"""Serves the pages of the `miniwob` package on loopback, and lists its tasks.

The benchmark's HTML is part of the installed package. It is served unchanged with a content security policy: scripts
that a policy types into a page do not run. Only files below that folder are served, and only to 127.0.0.1. The
benchmark's pages request no other origin.
"""

from __future__ import annotations

import mimetypes
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urlsplit

from envs.core.errors import BadInput
from envs.suites.miniwob.content_policy import content_security_policy

TASK_FOLDER = "miniwob"
"""Folder of the task pages below the HTML root; its sibling `flight` holds sub-pages of two tasks."""

POLL_S = 0.05
"""How often the serving thread checks for its end; `close` waits at most this long."""


def html_root() -> Path:
    """The HTML folder of the installed `miniwob` package, located without importing it (its import loads Selenium)."""
    spec = find_spec("miniwob")
    if spec is None or not spec.submodule_search_locations:
        raise BadInput("the `miniwob` package is not installed: pip install 'miniwob>=1.1,<1.2'")
    root = Path(next(iter(spec.submodule_search_locations))) / "html"
    if not (root / TASK_FOLDER).is_dir():
        raise BadInput(f"the `miniwob` package at {root.parent} ships no task pages: reinstall miniwob>=1.1")
    return root


def task_names(root: Path) -> tuple[str, ...]:
    """Every task page of the package, sorted."""
    return tuple(sorted(page.stem for page in (root / TASK_FOLDER).glob("*.html")))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    root: Path

    def do_GET(self) -> None:
        file = (self.root / unquote(urlsplit(self.path).path).lstrip("/")).resolve()
        if not file.is_relative_to(self.root) or not file.is_file():
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        body = file.read_bytes()
        self.send_response(HTTPStatus.OK)
        media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        self.send_header("Content-Type", media_type)
        if media_type == "text/html":
            self.send_header("Content-Security-Policy", content_security_policy(body))
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=3600")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


class PageServer:
    """Serves a folder on a free loopback port in a daemon thread, from `start` until `close`."""

    def __init__(self, root: Path) -> None:
        handler = type("Handler", (_Handler,), {"root": root.resolve()})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_S,), name="miniwob-pages", daemon=True
        )
        self._started = False
        self.origin = f"http://127.0.0.1:{self._server.server_address[1]}"

    def task_url(self, name: str) -> str:
        return f"{self.origin}/{TASK_FOLDER}/{name}.html"

    def start(self) -> Self:
        if not self._started:
            self._started = True
            self._thread.start()
        return self

    def close(self) -> None:
        if self._started:
            self._started = False
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
