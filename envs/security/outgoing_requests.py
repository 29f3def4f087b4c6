"""Every outgoing request that the boundary's proxy can read passes a list of checks before any of it is sent.

Without a check nothing is read that was not read before: bodies stream, and tunnels are passed on as they are. With
one, the proxy ends every tunnel itself (:mod:`envs.security.tls_termination`), so that requests by https and WebSocket
messages are read too.
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
"""Bytes of a body, or of a WebSocket message, that a check is shown."""
MESSAGE: Final = "MESSAGE"
"""In place of the method where the bytes are a WebSocket message, or the reason of its closing."""
_COMPRESSION: Final = b"sec-websocket-extensions"


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request before any of it is sent."""

    method: str
    """As the browser wrote it; MESSAGE for a WebSocket message."""
    url: str
    """Absolute, with the canonical origin; a WebSocket message has the URL of its handshake."""
    fields: tuple[tuple[bytes, bytes], ...]
    """The header, names in lower case; of a WebSocket message that of its handshake."""
    body: bytes = b""
    """At most BODY_BYTES."""
    is_whole: bool = True
    """False where the body continues after *body*."""
    kind: RequestKind | None = None
    """What it is for; None where the browser does not say."""

    def values(self, name: bytes) -> list[bytes]:
        """The values of one field of the header."""
        return [value for key, value in self.fields if key == name]

    @property
    def opens_page(self) -> bool:
        """Whether a tab or a frame is to show the answer, now or later, or a download is to keep it.

        Over plain http to another machine the browser does not name the mode. There its wish for a secure page tells,
        which a page can add to a request and not take away; a download says nothing at all of what it accepts.
        """
        if any(b"prefetch" in purpose for purpose in self.values(b"sec-purpose")):
            return True
        if mode := self.values(b"sec-fetch-mode"):
            return mode == [b"navigate"]
        if self.values(b"upgrade-insecure-requests"):
            return True
        return not self.values(b"accept") and self.method == "GET" and self.kind != "websocket"

    @property
    def is_left_behind(self) -> bool:
        """Whether it may be a beacon, which is to arrive though its page is gone, and whose answer nobody reads."""
        return self.values(b"sec-fetch-mode") == [b"no-cors"] and self.values(b"sec-fetch-dest") == [b"empty"]


Check = Callable[[Outgoing], Awaitable[str]]
"""Why a request fails, in one line; an empty one sends it. It may wait for a person; no time limit counts meanwhile.
Cancelled where the browser gives the request up, unless it is left behind."""


class Checks:
    """The checks of one boundary, by name; all are asked, in the order in which they were put."""

    def __init__(self) -> None:
        self._by_name: dict[str, Check] = {}

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def put(self, name: str, check: Check) -> None:
        """Adds a check, or replaces the one of this name."""
        self._by_name[name] = check

    async def problem(self, request: Outgoing) -> str:
        """What the first check says that lets *request* fail; empty where it may be sent."""
        for check in tuple(self._by_name.values()):
            if problem := await check(request):
                return problem
        return ""


class Stopped(Exception):
    """A check lets a request fail."""

    def __init__(self, reason: str, *, opens_page: bool) -> None:
        super().__init__(reason)
        self.opens_page = opens_page

    @property
    def answer(self) -> bytes:
        """What the browser is told: a document stays as it is (204); for anything else it is a network error, which a
        message with two lengths is to every browser, and one that is not tried again."""
        status = b"204 No Content" if self.opens_page else b"502 Bad Gateway\r\nContent-Length: 0\r\nContent-Length: 1"
        return b"HTTP/1.1 " + status + b"\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"


def outgoing(request: Request, origin: Origin, path: bytes, body: bytes, *, is_whole: bool) -> Outgoing:
    url = str(origin) + path.decode("latin-1")
    return Outgoing(request.method.decode(), url, request.fields, body, is_whole, kind_of(request))


def uncompressed(request: Request) -> Request:
    """*request* without what would let a WebSocket compress its messages, which are to be read."""
    return replace(request, fields=tuple(field for field in request.fields if field[0] != _COMPRESSION))
