"""Parts of the allowlist proxy: its limits, its connections, and the responses that it creates itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, cast

from envs.security.allowlist import Origin, Origins, origin_of
from envs.security.blocked_requests import NOWHERE, UNREADABLE, Place, RequestKind
from envs.security.http1 import BLOCK, Request
from envs.security.outgoing_requests import Checks, Stopped
from envs.security.upstream_proxy import UpstreamProxy

_ABSOLUTE = re.compile(rb"(?:http|ws)://[^/?#@\\]+([^#]*)", re.IGNORECASE)
_PHRASES = {400: "Bad Request", 403: "Forbidden", 431: "Too Large", 502: "Bad Gateway", 503: "Busy", 504: "Timeout"}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what a page can cause in the proxy: seconds, bytes and connections."""

    head_bytes: int = 65_536
    body_bytes: int = 4_000_000_000
    """For one request, response, or direction of a tunnel."""
    idle_s: float = 300.0
    """How long a browser may keep an unused connection."""
    connect_s: float = 10.0
    """For resolving the name and connecting, all addresses together."""
    exchange_s: float = 600.0
    """For one request and its response, from the first byte to the last."""
    tunnel_s: float = 7_200.0
    linger_s: float = 10.0
    """How long a tunnel stays open after one side has closed."""
    connections: int = 512


USUAL_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that the rules do not admit; it is recorded."""

    origin: str
    """As far as it is known; the scheme of a tunnel is guessed from its port."""
    name: str = UNREADABLE
    """The origin under which it is counted: http or https."""
    place: Place = NOWHERE
    allow: str = ""
    """The rule that would admit it; empty if there is none."""
    kind: RequestKind | None = None


class Denied(Exception):
    """Ends one request with a response of the proxy itself."""

    def __init__(self, status: int, reason: str, refused: Refused | None = None, *, bare: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.refused = refused
        """Set if no rule admits the request."""
        self.bare = bare
        """True: respond without a body. The browser then shows its own error page, which requests no icon."""


class Link(NamedTuple):
    """One connection, to the browser or to a server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    relay: UpstreamProxy | None = None
    """The upstream proxy at the other end, if it takes requests in absolute form; None: a server, or a tunnel to it."""

    @property
    def transport(self) -> asyncio.Transport:
        return cast(asyncio.Transport, self.writer.transport)

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: int, reason: str, *, bare: bool = False) -> None:
        """Sends the browser the reason why there is no response of the server."""
        body = b"" if bare else f"mira: {reason}\n".encode("utf-8", "replace")
        head = (
            f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        await self.write(head.encode() + body)


class Proxy(Protocol):
    """What a connection uses of the proxy that accepted it."""

    origins: Origins
    limits: Limits
    checks: Checks

    def refuse(self, refused: Refused, reason: str) -> None: ...

    async def connect(
        self, origin: Origin, *, load: bool = False, tls: bool = False, relayed: bool = False
    ) -> Link: ...


def target_of(request: Request) -> tuple[Origin, bytes]:
    """The target origin and path of an absolute-form request. Raises Denied."""
    match = _ABSOLUTE.fullmatch(request.target)
    origin = origin_of(request.target.decode("latin-1")) if match else None
    if match is None or origin is None:
        raise Denied(403, "not the absolute address of a server", Refused(shown(request.target)))
    path = match.group(1)
    return origin, path if path.startswith(b"/") else b"/" + path


async def join(client: Link, server: Link, limits: Limits, out: Coroutine[Any, Any, None] | None = None) -> None:
    """Forwards bytes in both directions until both sides have closed, or `linger_s` after one has.

    *out* replaces the default forwarding from *client* to *server*. If it raises Stopped, both directions end and the
    exception is raised.
    """
    directions = {
        asyncio.create_task(out or _pump(client.reader, server, limits.body_bytes)),
        asyncio.create_task(_pump(server.reader, client, limits.body_bytes)),
    }
    try:
        ended, still_open = await asyncio.wait(directions, timeout=limits.tunnel_s, return_when=asyncio.FIRST_COMPLETED)
        if len(still_open) == 1 and not any(direction.exception() for direction in ended):
            await asyncio.wait(still_open, timeout=limits.linger_s)
    finally:
        for direction in directions:
            direction.cancel()
        results = await asyncio.gather(*directions, return_exceptions=True)
    for result in results:
        if isinstance(result, Stopped):
            raise result


async def _pump(reader: asyncio.StreamReader, link: Link, limit: int) -> None:
    """Forwards bytes until end of file, and the end of file."""
    while limit > 0 and (block := await reader.read(BLOCK)):
        limit -= len(block)
        await link.write(block)
    if link.writer.can_write_eof():  # not over TLS
        link.writer.write_eof()


def shown(target: bytes) -> str:
    return target[:200].decode("latin-1")


def refused_at(origin: Origin, kind: RequestKind | None = None, allow: str | None = None) -> Refused:
    """The refusal of a request to *origin*. *allow*: the rule that would admit it, by default the rule of *origin*."""
    rule = origin.rule
    return Refused(str(origin), rule, Place(origin.host, origin.port), rule if allow is None else allow, kind)


def no_rule(origin: Origin, kind: RequestKind | None = None) -> Denied:
    reason = f"no rule allows {origin}: if that is intended, use --allow {origin.rule}"
    return Denied(403, reason, refused_at(origin, kind))
