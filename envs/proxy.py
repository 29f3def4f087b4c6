"""The boundary below the model: a forwarding proxy on loopback that reaches allowed origins and nothing else.

Whatever a page or a model does, a request leaves the browser only through here: http in absolute form, https and
WebSockets as CONNECT tunnels (the browser's switches for that are in :mod:`envs.chromium`). Guarantees:

  - No connection is opened, and no name looked up, for an origin that no rule covers; redirects are new requests.
  - Names are resolved here, once a connection, and the connection goes to the address that was judged. A name that
    leads to this machine or its link (127.0.0.1, 169.254.169.254) is refused unless the rules cover that address
    too: an allowed site must not be a door to local services.
  - Every refusal is recorded with its reason.
  - Every exchange is bounded in time, size and number.

Not promised: protection against other users of this machine (they gain nothing: what is allowed here they can
reach without), and inspection of what goes through a tunnel.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

from envs.addresses import Resolve, is_localhost, leads_inward, look_up, parse_address
from envs.http1 import (
    BLOCK,
    BadMessage,
    Framing,
    Request,
    Response,
    TooLarge,
    copy_body,
    read_request,
    read_response,
    request_framing,
    request_head,
    response_framing,
    response_head,
)
from envs.origins import Origin, Origins, canonical_host, origin_of

T = TypeVar("T")
CLOSE_S = 5.0
"""Longest wait for connections to end when the boundary closes."""


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


class Refusal(NamedTuple):
    """A request that was not let through."""

    origin: str
    """As far as it can be told; the scheme of a tunnel is guessed from its port."""
    reason: str


MAX_RECORDED: Final = 100_000
"""Refusals kept; a page can make them without end, `refusals` counts on."""

_ABSOLUTE = re.compile(rb"(?:http|ws)://[^/?#@\\]+([^#]*)", re.IGNORECASE)
_TUNNEL = re.compile(rb"(\[[^\]]+\]|[^:@/]+):([0-9]{1,5})")
_SAFE = frozenset((b"GET", b"HEAD", b"OPTIONS"))
_PHRASES = {400: "Bad Request", 403: "Forbidden", 431: "Too Large", 502: "Bad Gateway", 503: "Busy", 504: "Timeout"}

_listening: set[int] = set()
"""Ports of all boundaries of this process: none may be used to reach another."""


class _Denied(Exception):
    """Ends one request with an answer of the proxy's own."""

    def __init__(self, status: int, reason: str, *, origin: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.origin = origin
        """Set where a rule forbids it: it is recorded then."""


class _Link(NamedTuple):
    """One connection, to the browser or to a server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def write(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


class Boundary:
    """One allowlist, one port. Use as `async with Boundary(origins) as boundary:`."""

    def __init__(
        self,
        origins: Origins,
        *,
        limits: Limits = Limits(),
        resolve: Resolve | None = None,
        routes: Mapping[str, tuple[str, int]] | None = None,
    ) -> None:
        self.origins = origins
        self.routes = dict(routes or {})
        """Where the servers of some origins (`http://shop.test`) really are: address and port, no name looked up.
        A route allows nothing: the origin must be covered by a rule. May be changed between requests."""
        self.limits = limits
        self.blocked: list[str] = []
        """Origins refused so far, oldest first, at most MAX_RECORDED."""
        self.refused: list[Refusal] = []
        """The same with reasons."""
        self.refusals = 0
        """All refusals, counted."""
        self._resolve = resolve or look_up
        self._server: asyncio.Server | None = None
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def server(self) -> str:
        """The proxy's URL, for Playwright's `proxy=`. Known once started."""
        return f"http://127.0.0.1:{self._port}"

    def allows(self, url: str) -> bool:
        return self.origins.allows(url)

    async def start(self) -> Self:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=self.limits.head_bytes)
            self._port = self._server.sockets[0].getsockname()[1]
            _listening.add(self._port)
        return self

    async def close(self) -> None:
        """Stops listening and ends every connection; safe to call twice."""
        if self._server is not None:
            self._server.close()
            self._server = None
            _listening.discard(self._port)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=CLOSE_S)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await _Client(self, _Link(reader, writer)).serve(busy=len(self._tasks) > self.limits.connections)
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass  # the peer went away, or the boundary is closing: either way this connection is over
        finally:
            self._tasks.discard(task)
            writer.close()

    def record(self, origin: str, reason: str) -> None:
        self.refusals += 1
        if len(self.blocked) < MAX_RECORDED:
            self.blocked.append(origin)
            self.refused.append(Refusal(origin, reason))

    async def connect(self, origin: Origin) -> _Link:
        """A connection to an origin that the rules cover. Raises _Denied."""
        try:
            async with asyncio.timeout(self.limits.connect_s):
                return await self._connect(origin)
        except TimeoutError:
            raise _Denied(504, f"{origin} did not answer within {self.limits.connect_s:g} s") from None
        except OSError as error:
            raise _Denied(502, f"cannot reach {origin}: {error.strerror or error}") from None

    async def _connect(self, origin: Origin) -> _Link:
        if routed := self.routes.get(str(origin)):
            return _Link(*await asyncio.open_connection(*routed, limit=self.limits.head_bytes))
        addresses = [origin.host] if parse_address(origin.host) else await self._resolve(origin.host)
        failure = OSError("the name has no address")
        for address in addresses:
            self._judge_address(origin, address)
            try:
                return _Link(*await asyncio.open_connection(address, origin.port, limit=self.limits.head_bytes))
            except OSError as error:
                failure = error
        raise failure

    def _judge_address(self, origin: Origin, address: str) -> None:
        parsed = parse_address(address)
        if parsed is None:
            raise _Denied(403, f"{address!r} is no address", origin=str(origin))
        if parsed.is_loopback and origin.port in _listening:
            raise _Denied(403, "this is a run's own boundary", origin=str(origin))
        covered = is_localhost(origin.host) or self.origins.allows_tunnel(str(parsed), origin.port)
        if leads_inward(parsed) and not covered:
            reason = f"{origin.host} leads to {parsed} on this machine or its link; allow {parsed} too if that is meant"
            raise _Denied(403, reason, origin=str(origin))


def _no_rule(origin: Origin) -> str:
    return f"no rule allows {origin}: if that is meant, say --allow {origin.rule}"


class _Client:
    """One connection of the browser: any number of requests, or one tunnel."""

    def __init__(self, boundary: Boundary, link: _Link) -> None:
        self._boundary = boundary
        self._limits = boundary.limits
        self._link = link
        self._early = b""
        """Read while watching whether the browser had gone."""
        self._upstream: tuple[Origin, _Link] | None = None
        """The server's connection of the last request, if it may be used again."""

    async def serve(self, *, busy: bool) -> None:
        try:
            while await self._serve_one(busy):
                pass
        finally:
            self._drop_upstream()

    async def _serve_one(self, busy: bool) -> bool:
        """Answers one request; False where the connection is over."""
        try:
            async with asyncio.timeout(self._limits.idle_s):
                early, self._early = self._early, b""
                request = await read_request(self._link.reader, early)
            if request is None:
                return False
            if busy:
                raise _Denied(503, f"more than {self._limits.connections} connections")
            if request.method == b"CONNECT":
                await self._tunnel(request)
                return False
            async with asyncio.timeout(self._limits.exchange_s):
                return await self._forward(request)
        except _Denied as denied:
            if denied.origin is not None:
                self._boundary.record(denied.origin, denied.reason)
            await self._answer(denied.status, denied.reason)
        except TooLarge as error:
            await self._answer(431, str(error))
        except BadMessage as error:
            await self._answer(400, str(error))
        return False

    async def _tunnel(self, request: Request) -> None:
        match = _TUNNEL.fullmatch(request.target)
        host = canonical_host(match.group(1).decode("latin-1")) if match else None
        if match is None or host is None:
            raise _Denied(403, "no host that can be read", origin=_shown(request.target))
        port = int(match.group(2))
        origin = Origin("ws" if port == 80 else "https", host, port)
        if not self._boundary.origins.allows_tunnel(host, port):
            raise _Denied(403, _no_rule(origin), origin=str(origin))
        server = await self._boundary.connect(origin)
        try:
            await self._link.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._join(server)
        finally:
            server.writer.close()

    async def _join(self, server: _Link) -> None:
        """Passes bytes both ways until both sides have closed, or soon after one has."""
        limit = self._limits.body_bytes
        ways = {
            asyncio.create_task(_pump(self._link.reader, server, limit)),
            asyncio.create_task(_pump(server.reader, self._link, limit)),
        }
        try:
            _, open_way = await asyncio.wait(ways, timeout=self._limits.tunnel_s, return_when=asyncio.FIRST_COMPLETED)
            if len(open_way) == 1:
                await asyncio.wait(open_way, timeout=self._limits.linger_s)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _forward(self, request: Request) -> bool:
        origin, path = _target(request)
        if not self._boundary.origins.allows_origin(origin):
            raise _Denied(403, _no_rule(origin), origin=str(origin))
        framing = request_framing(request)
        head = request_head(request, str(origin).partition("://")[2].encode(), path)
        server, response = await self._exchange(request, origin, head, framing)
        if response.status == 101:
            return await self._switch(response, server)
        return await self._pass_back(request, response, origin, server)

    async def _switch(self, response: Response, server: _Link) -> bool:
        """The server has agreed to leave HTTP (a WebSocket asked for without a tunnel)."""
        try:
            await self._link.write(response_head(response, b"Upgrade"))
            if self._early:
                await server.write(self._early)
            await self._join(server)
        finally:
            server.writer.close()
        return False

    async def _exchange(
        self, request: Request, origin: Origin, head: bytes, framing: Framing
    ) -> tuple[_Link, Response]:
        """Sends the request and reads the head of its final response."""
        repeatable = framing == 0 and request.method in _SAFE
        server = self._take_upstream(origin) if repeatable else None
        if server is not None:
            try:
                return server, await self._ask(server, head, 0)
            except (OSError, _Denied):
                server.writer.close()  # closed by the server while it was idle; nothing was answered: ask anew
        server = await self._boundary.connect(origin)
        try:
            return server, await self._ask(server, head, framing)
        except BaseException:
            server.writer.close()
            raise

    async def _ask(self, server: _Link, head: bytes, framing: Framing) -> Response:
        await server.write(head)
        await copy_body(framing, self._link.reader, server.write, self._limits.body_bytes)
        while True:
            try:
                response = await self._unless_gone(read_response(server.reader))
            except BadMessage as error:
                raise _Denied(502, f"the server's answer cannot be read: {error}") from None
            if response is None:
                raise _Denied(502, "the server closed the connection without an answer")
            if response.status == 407:
                raise _Denied(502, "a server must not ask for the proxy's password")
            if response.status >= 200 or response.status == 101:
                return response

    async def _pass_back(self, request: Request, response: Response, origin: Origin, server: _Link) -> bool:
        """Sends the response to the browser; True if the connection can serve another request."""
        self._upstream = (origin, server)  # closed with this connection at the latest
        try:
            framing = response_framing(response, request.method)
        except BadMessage as error:
            raise _Denied(502, f"the server's answer cannot be read: {error}") from None
        keep = framing != "until_close" and request.keep_alive
        await self._link.write(response_head(response, b"keep-alive" if keep else b"close"))
        copying = copy_body(framing, server.reader, self._link.write, self._limits.body_bytes)
        try:
            await (copying if isinstance(framing, int) and framing <= BLOCK else self._unless_gone(copying))
        except BadMessage:
            return False  # the head is out already: only a broken connection tells the browser that this is not all
        if not response.keep_alive:
            self._drop_upstream()
        return keep

    async def _unless_gone(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of *work*, which is given up when the browser closes its side. Raises ConnectionError then."""
        watch = asyncio.create_task(self._link.reader.read(1))
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({watch, task}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and not watch.result():
                raise ConnectionResetError("the browser closed the connection")
            return await task
        finally:
            task.cancel()
            watch.cancel()
            _, seen = await asyncio.gather(task, watch, return_exceptions=True)
            if isinstance(seen, bytes):
                self._early += seen

    def _take_upstream(self, origin: Origin) -> _Link | None:
        kept, self._upstream = self._upstream, None
        if kept is None:
            return None
        if kept[0] == origin and not kept[1].reader.at_eof():
            return kept[1]
        kept[1].writer.close()
        return None

    def _drop_upstream(self) -> None:
        if self._upstream is not None:
            self._upstream[1].writer.close()
            self._upstream = None

    async def _answer(self, status: int, reason: str) -> None:
        body = f"mira: {reason}\n".encode("utf-8", "replace")
        head = (
            f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        await self._link.write(head.encode() + body)


def _target(request: Request) -> tuple[Origin, bytes]:
    """Where an absolute-form request goes, and the path to ask for there. Raises _Denied."""
    match = _ABSOLUTE.fullmatch(request.target)
    origin = origin_of(request.target.decode("latin-1")) if match else None
    if match is None or origin is None:
        raise _Denied(403, "not the absolute address of a server", origin=_shown(request.target))
    path = match.group(1)
    return origin, path if path.startswith(b"/") else b"/" + path


async def _pump(reader: asyncio.StreamReader, link: _Link, limit: int) -> None:
    """Passes bytes on until their end, which is passed on too."""
    while limit > 0 and (block := await reader.read(BLOCK)):
        limit -= len(block)
        await link.write(block)
    link.writer.write_eof()


def _shown(target: bytes) -> str:
    return target[:200].decode("latin-1")
