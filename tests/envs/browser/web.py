"""A real web server on loopback with configured answers, which records its requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import TracebackType
from typing import Self

from tests.timing import HANG_S


class Gate:
    """Holds answers back until a test releases them."""

    def __init__(self) -> None:
        self.reached = Event()
        """A request for a held answer has arrived."""
        self.open = Event()


@dataclass(frozen=True)
class Answer:
    body: bytes | str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    pause_s: float = 0.0
    """Pause between the first half of the body and the rest."""
    gate: Gate | None = None
    """The second half of the body is sent when it opens."""


class Web:
    """`web["/x"] = "<p>html"` or an Answer; other paths return 404."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[tuple[str, str, bytes]] = []
        """(method, path with query, body) in the order of arrival."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._closing = Event()
        """Ends the delays of answers."""
        self.port = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __setitem__(self, path: str, answer: str | Answer) -> None:
        self.answers[path] = answer if isinstance(answer, Answer) else Answer(answer)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def hits(self, path: str) -> int:
        return sum(1 for _, asked, _ in self.requests if asked.partition("?")[0] == path)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.requests.append((self.command, self.path, body))
                answer = outer.answers.get(self.path.partition("?")[0], Answer("not found", 404))
                outer._closing.wait(answer.delay_s)
                content = answer.body.encode() if isinstance(answer.body, str) else answer.body
                self.send_response(answer.status)
                for name, value in {"Content-Type": "text/html; charset=utf-8", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                half = len(content) // 2
                self._send(content[:half])
                outer._closing.wait(answer.pause_s)
                if answer.gate is not None:
                    answer.gate.reached.set()
                    answer.gate.open.wait(HANG_S)
                self._send(content[half:])

            def _send(self, content: bytes) -> None:
                """A browser that has left must not keep a gate from being reached."""
                try:
                    self.wfile.write(content)
                    self.wfile.flush()
                except OSError:
                    self.close_connection = True

            do_POST = do_GET  # noqa: N815 - the name is the standard library's

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        return Handler
