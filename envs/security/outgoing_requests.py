"""Checks outgoing requests in the allowlist proxy before any of them is sent.

Without a check, bodies are streamed and tunnels are forwarded unread. With a check, the proxy terminates every tunnel
(:mod:`envs.security.tls_termination`), so that https requests and WebSocket messages can be checked too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from envs.security.allowlist import Origin
from envs.security.blocked_requests import RequestKind
from envs.security.http1 import Request
from envs.security.subresources import kind_of

BODY_BYTES: Final = 1_000_000
"""Bytes of a body or WebSocket message that a check receives."""
MESSAGE: Final = "MESSAGE"
"""Replaces the method for a WebSocket message and for the reason of a WebSocket's closing."""
_COMPRESSION: Final = b"sec-websocket-extensions"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request before any of it is sent."""

    method: str
    """As the browser wrote it; MESSAGE for a WebSocket message."""
    url: str
    """Absolute, with the canonical origin; a WebSocket message has the URL of its handshake."""
    fields: tuple[tuple[bytes, bytes], ...]
    """Header fields, names in lower case; a WebSocket message has those of its handshake."""
    body: bytes = b""
    """At most BODY_BYTES."""
    is_whole: bool = True
    """False if the body continues after *body*."""
    kind: RequestKind | None = None
    """Its purpose; None if the browser does not name one."""

    def values(self, name: bytes) -> list[bytes]:
        """The values of one header field."""
        return [value for key, value in self.fields if key == name]

    @property
    def opens_page(self) -> bool:
        """True if the response is shown in a tab or frame, now or later, or saved as a download.

        Over plain http to another machine the browser does not send the mode. There `Upgrade-Insecure-Requests` marks
        page loads (a page can add it to a request but not remove it), and a download sends no `Accept` header.
        """
        if any(b"prefetch" in purpose for purpose in self.values(b"sec-purpose")):
            return True
        if mode := self.values(b"sec-fetch-mode"):
            return mode == [b"navigate"]
        if self.values(b"upgrade-insecure-requests"):
            return True
        return not self.values(b"accept") and self.method == "GET" and self.kind != "websocket"

    @property
    def may_be_beacon(self) -> bool:
        """True if it may be a beacon: it must arrive after its page is gone, and its response is not read."""
        return self.values(b"sec-fetch-mode") == [b"no-cors"] and self.values(b"sec-fetch-dest") == [b"empty"]


Check = Callable[[Outgoing], Awaitable[str]]
"""Returns why a request fails, in one line; empty to send it. It may wait for a person; time limits do not count
meanwhile. It is cancelled if the browser cancels the request, except for a possible beacon."""


class Checks:
    """The named checks of one proxy, applied in the order in which they were added."""

    def __init__(self) -> None:
        self._by_name: dict[str, Check] = {}

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def put(self, name: str, check: Check) -> None:
        """Adds a check, or replaces the one of this name."""
        self._by_name[name] = check

    async def problem(self, request: Outgoing) -> str:
        """The reason of the first check that stops *request*; empty if it may be sent."""
        for check in tuple(self._by_name.values()):
            if problem := await check(request):
                return problem
        return ""


class Stopped(Exception):
    """Raised when a check stops a request."""

    def __init__(self, reason: str, *, opens_page: bool) -> None:
        super().__init__(reason)
        self.opens_page = opens_page

    @property
    def answer(self) -> bytes:
        """The response to the browser. For a page load it is 204, which keeps the current document. For others it is a
        message with two lengths, which every browser reports as a network error and does not retry."""
        status = b"204 No Content" if self.opens_page else b"502 Bad Gateway\r\nContent-Length: 0\r\nContent-Length: 1"
        return b"HTTP/1.1 " + status + b"\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"


def outgoing(request: Request, origin: Origin, path: bytes, body: bytes, *, is_whole: bool) -> Outgoing:
    """Converts a parsed request for the checks."""
    url = str(origin) + path.decode("latin-1")
    return Outgoing(request.method.decode(), url, request.fields, body, is_whole, kind_of(request))


def without_compression(request: Request) -> Request:
    """*request* without the header that allows compressed WebSocket messages, so that they can be read."""
    return replace(request, fields=tuple(field for field in request.fields if field[0] != _COMPRESSION))
