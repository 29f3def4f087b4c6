"""The parts of the boundary's proxy: its bounds, its connections, and the answers that it gives itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from envs.security.allowlist import Origin, origin_of
from envs.security.blocked_requests import NOWHERE, UNREADABLE, Place, RequestKind
from envs.security.http1 import BLOCK, Request
from envs.security.outgoing_requests import Stopped

_ABSOLUTE = re.compile(rb"(?:http|ws)://[^/?#@\\]+([^#]*)", re.IGNORECASE)
_PHRASES = {400: "Bad Request", 403: "Forbidden", 431: "Too Large", 502: "Bad Gateway", 503: "Busy", 504: "Timeout"}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what a page can make the proxy do; seconds, bytes and connections."""

    head_bytes: int = 65_536
    body_bytes: int = 4_000_000_000
    """Of one request, response, or direction of a tunnel."""
    idle_s: float = 300.0
    """A browser may keep an unused connection this long."""
    connect_s: float = 10.0
    """Looking up the name and connecting, all addresses together."""
    exchange_s: float = 600.0
    """One request and its response, from the first byte to the last."""
    tunnel_s: float = 7_200.0
    linger_s: float = 10.0
    """A tunnel that one side has closed."""
    connections: int = 512


USUAL_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Refused:
    """A rule forbids a request; it is recorded."""

    origin: str
    """As far as it can be told; the scheme of a tunnel is guessed from its port."""
    name: str = UNREADABLE
    """The origin as it is counted: http or https."""
    place: Place = NOWHERE
    allow: str = ""
    """The rule that would admit it; empty where none does."""
    kind: RequestKind | None = None


class Denied(Exception):
    """Ends one request with an answer of the proxy's own."""

    def __init__(self, status: int, reason: str, refused: Refused | None = None, *, bare: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.refused = refused
        """Set where a rule forbids it."""
        self.bare = bare
        """Answer without a body: the browser makes its own error page of it, for which it asks for no icon."""


class Link(NamedTuple):
    """One connection, to the browser or to a server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def transport(self) -> asyncio.Transport:
        return cast(asyncio.Transport, self.writer.transport)

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: int, reason: str, *, bare: bool = False) -> None:
        """Tells the browser why there is no answer of the server's."""
        body = b"" if bare else f"mira: {reason}\n".encode("utf-8", "replace")
        head = (
            f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        await self.write(head.encode() + body)


def target_of(request: Request) -> tuple[Origin, bytes]:
    """Where an absolute-form request goes, and the path to ask for there. Raises Denied."""
    match = _ABSOLUTE.fullmatch(request.target)
    origin = origin_of(request.target.decode("latin-1")) if match else None
    if match is None or origin is None:
        raise Denied(403, "not the absolute address of a server", Refused(shown(request.target)))
    path = match.group(1)
    return origin, path if path.startswith(b"/") else b"/" + path


async def join(one: Link, other: Link, limits: Limits, out: Coroutine[Any, Any, None] | None = None) -> None:
    """Passes bytes both ways until both sides have closed, or soon after one has. *out* passes those from *one* on in
    place of the usual way; what it raises ends both ways and is raised."""
    ways = {
        asyncio.create_task(out or _pump(one.reader, other, limits.body_bytes)),
        asyncio.create_task(_pump(other.reader, one, limits.body_bytes)),
    }
    try:
        ended, open_way = await asyncio.wait(ways, timeout=limits.tunnel_s, return_when=asyncio.FIRST_COMPLETED)
        if len(open_way) == 1 and not any(way.exception() for way in ended):
            await asyncio.wait(open_way, timeout=limits.linger_s)
    finally:
        for way in ways:
            way.cancel()
        found = await asyncio.gather(*ways, return_exceptions=True)
    for stopped in found:
        if isinstance(stopped, Stopped):
            raise stopped


async def _pump(reader: asyncio.StreamReader, link: Link, limit: int) -> None:
    """Passes bytes on until their end, which is passed on too."""
    while limit > 0 and (block := await reader.read(BLOCK)):
        limit -= len(block)
        await link.write(block)
    if link.writer.can_write_eof():  # not by TLS
        link.writer.write_eof()


def shown(target: bytes) -> str:
    return target[:200].decode("latin-1")


def refused_at(origin: Origin, kind: RequestKind | None = None, allow: str | None = None) -> Refused:
    """*allow*: the rule that would admit it, where it is not the origin's own."""
    rule = origin.rule
    return Refused(str(origin), rule, Place(origin.host, origin.port), rule if allow is None else allow, kind)


def no_rule(origin: Origin, kind: RequestKind | None = None) -> Denied:
    reason = f"no rule allows {origin}: if that is meant, say --allow {origin.rule}"
    return Denied(403, reason, refused_at(origin, kind))
