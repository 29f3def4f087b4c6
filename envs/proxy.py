"""The boundary below the model: a forwarding proxy on loopback that reaches allowed origins and nothing else.

Whatever a page or a model does, a request leaves the browser only through here: http in absolute form, https and
WebSockets as CONNECT tunnels (the browser's switches for that are in :mod:`envs.chromium`). Guarantees:

  - No connection is opened, and no name looked up, for an origin that no rule covers; redirects are new requests.
  - Names are resolved here, once a connection, and the connection goes to the address that was judged. A name that
    leads to this machine or its link (127.0.0.1, 169.254.169.254) is refused unless the rules cover that address
    too: an allowed site must not be a door to local services.
  - Where only a rule for subresources covers an origin, its tunnel ends here (:mod:`envs.own_tls`): each request is
    read, and only passive loads go on (:mod:`envs.subresources`), without cookies or passwords.
  - Every refusal is recorded with its reason.
  - Every exchange is bounded in time, size and number.

Not promised: protection against other users of this machine (they gain nothing: what is allowed here they can
reach without), and inspection of what goes through any other tunnel.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar

from envs import subresources
from envs.addresses import Address, Resolve, is_localhost, leads_inward, look_up, parse_address, unreachable
from envs.blocked import Place, RequestKind, Tally
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
from envs.origins import Origin, Origins, canonical_host
from envs.own_tls import own_end, verified
from envs.proxy_links import USUAL_LIMITS, Denied, Limits, Link, Refused, join, shown, target_of

T = TypeVar("T")
CLOSE_S = 5.0
"""Longest wait for connections to end when the boundary closes."""


class Refusal(NamedTuple):
    """A request that was not let through."""

    origin: str
    """As far as it can be told; the scheme of a tunnel is guessed from its port."""
    reason: str


MAX_RECORDED: Final = 100_000
"""Refusals kept; a page can make them without end, `refusals` counts on."""

_TUNNEL = re.compile(rb"(\[[^\]]+\]|[^:@/]+):([0-9]{1,5})")
_SAFE = frozenset((b"GET", b"HEAD", b"OPTIONS"))

_MAX_UNREACHABLE = 100

_listening: set[int] = set()
"""Ports of all boundaries of this process: none may be used to reach another."""


class Boundary:
    """One allowlist, one port. Use as `async with Boundary(origins) as boundary:`."""

    def __init__(
        self,
        origins: Origins,
        *,
        limits: Limits = USUAL_LIMITS,
        resolve: Resolve | None = None,
        routes: Mapping[str, tuple[str, int]] | None = None,
        authorities: ssl.SSLContext | None = None,
    ) -> None:
        """*authorities* verify the servers of subresources; None: the system's."""
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
        self.tally = Tally()
        """All refusals by host and port."""
        self.unreachable: dict[Place, str] = {}
        """Why the last connections could not be made, by where they were to go; the latest _MAX_UNREACHABLE, the last
        one last. A session clears it before each action."""
        self._resolve = resolve or look_up
        self._authorities = authorities
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
            await _Client(self, Link(reader, writer)).serve(busy=len(self._tasks) > self.limits.connections)
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

    def refuse(self, refused: Refused, reason: str) -> None:
        self.record(refused.origin, reason)
        self.tally.add(refused.place, refused.name, refused.allow, refused.kind)

    async def connect(self, origin: Origin, *, load: bool = False) -> Link:
        """A connection to an origin that the rules cover, for a *load* (by TLS, where it is https) or for everything.
        Raises Denied."""
        try:
            async with asyncio.timeout(self.limits.connect_s):
                return await self._connect(origin, load)
        except TimeoutError:
            raise self._unreachable(504, origin, f"no answer within {self.limits.connect_s:g} s") from None
        except OSError as error:
            raise self._unreachable(502, origin, unreachable(origin.host, origin.port, error)) from None

    def _unreachable(self, status: int, origin: Origin, why: str) -> Denied:
        place = Place(origin.host, origin.port)
        self.unreachable.pop(place, None)
        self.unreachable[place] = why
        if len(self.unreachable) > _MAX_UNREACHABLE:
            del self.unreachable[next(iter(self.unreachable))]
        return Denied(status, f"cannot reach {origin}: {why}")

    async def _connect(self, origin: Origin, load: bool) -> Link:
        tls = self._tls(origin) if load and origin.scheme == "https" else {}
        if routed := self.routes.get(str(origin)):
            return Link(*await asyncio.open_connection(*routed, limit=self.limits.head_bytes, **tls))
        addresses = [origin.host] if parse_address(origin.host) else await self._resolve(origin.host)
        failure = OSError("the name has no address")
        for address in addresses:
            self._judge_address(origin, address, load)
            try:
                made = await asyncio.open_connection(address, origin.port, limit=self.limits.head_bytes, **tls)
                return Link(*made)
            except OSError as error:
                failure = error
        raise failure

    def _tls(self, origin: Origin) -> dict[str, Any]:
        return {"ssl": self._authorities or verified(), "server_hostname": origin.host}

    def _judge_address(self, origin: Origin, address: str, load: bool) -> None:
        """Raises Denied where the address that a name led to is not the name's to give."""
        parsed = parse_address(address)
        if parsed is None:
            raise Denied(403, f"{address!r} is no address", _refused(origin, allow=""))
        if parsed.is_loopback and origin.port in _listening:
            raise Denied(403, "this is a run's own boundary", _refused(origin, allow=""))
        if is_localhost(origin.host) or self._covers(origin, parsed, load):
            return
        if leads_inward(parsed):
            reason = f"{origin.host} leads to {parsed} on this machine or its link; allow {parsed} too if that is meant"
            raise Denied(403, reason, _refused(origin, allow=_bare(parsed)))
        if load and not parsed.is_global and self.origins.subresources(origin) == "any":
            rule = f"subresources:{origin.rule}"
            reason = f"{origin.host} leads to {parsed}, no public address: if that is meant, say --allow {rule}"
            raise Denied(403, reason, _refused(origin, allow=rule))

    def _covers(self, origin: Origin, address: Address, load: bool) -> bool:
        """Whether a rule names the very *address*."""
        there = Origin(origin.scheme, str(address), origin.port)
        named = load and self.origins.subresources(there) == "named"
        return named or self.origins.allows_tunnel(there.host, there.port)


def _bare(address: Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)


def _refused(origin: Origin, kind: RequestKind | None = None, allow: str | None = None) -> Refused:
    """*allow*: the rule that would admit it, where it is not the origin's own."""
    rule = origin.rule
    return Refused(str(origin), rule, Place(origin.host, origin.port), rule if allow is None else allow, kind)


def _no_rule(origin: Origin, kind: RequestKind | None = None) -> Denied:
    reason = f"no rule allows {origin}: if that is meant, say --allow {origin.rule}"
    return Denied(403, reason, _refused(origin, kind))


class _Client:
    """One connection of the browser: any number of requests, or one tunnel."""

    def __init__(self, boundary: Boundary, link: Link) -> None:
        self._boundary = boundary
        self._limits = boundary.limits
        self._link = link
        self._early = b""
        """Read while watching whether the browser had gone."""
        self._upstream: tuple[Origin, Link] | None = None
        """The server's connection of the last request, if it may be used again."""
        self._inside: Origin | None = None
        """Where the requests inside a tunnel go that ends here."""

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
                raise Denied(503, f"more than {self._limits.connections} connections")
            if request.method == b"CONNECT" and self._inside is None:
                await self._tunnel(request)
                return False
            async with asyncio.timeout(self._limits.exchange_s):
                return await self._forward(request)
        except Denied as denied:
            if denied.refused is not None:
                self._boundary.refuse(denied.refused, denied.reason)
            await self._link.answer(denied.status, denied.reason, bare=denied.bare)
        except TooLarge as error:
            await self._link.answer(431, str(error))
        except BadMessage as error:
            await self._link.answer(400, str(error))
        return False

    async def _tunnel(self, request: Request) -> None:
        match = _TUNNEL.fullmatch(request.target)
        host = canonical_host(match.group(1).decode("latin-1")) if match else None
        if match is None or host is None:
            raise Denied(403, "no host that can be read", Refused(shown(request.target)))
        port = int(match.group(2))
        origin = Origin("ws" if port == 80 else "https", host, port)
        if not self._boundary.origins.allows_tunnel(host, port):
            if origin.scheme != "https" or self._boundary.origins.subresources(origin) == "no":
                raise _no_rule(origin, "websocket" if port == 80 else None)
            await self._end_tunnel(origin)
            return
        server = await self._boundary.connect(origin)
        try:
            await self._link.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await join(self._link, server, self._limits)
        finally:
            server.writer.close()

    async def _end_tunnel(self, origin: Origin) -> None:
        """Is the server, to the browser: reads and judges every request inside the tunnel."""
        await self._link.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            async with asyncio.timeout(self._limits.connect_s):
                await self._link.writer.start_tls(own_end().context)
        except (ssl.SSLError, TimeoutError):
            self._boundary.refuse(_refused(origin), f"not TLS, or not with this key, in a tunnel to {origin}")
            return
        self._inside = origin
        while await self._serve_one(busy=False):
            pass

    async def _forward(self, request: Request) -> bool:
        origin, path = target_of(request) if self._inside is None else (self._inside, _path(request))
        load = self._is_load(request, origin)
        request = subresources.anonymous(request) if load else request
        framing = request_framing(request)
        head = request_head(request, str(origin).partition("://")[2].encode(), path)
        server, response = await self._exchange(request, origin, head, framing, load)
        if response.status == 101 and not load:
            return await self._switch(response, server)
        response = subresources.forgotten(response) if load else response
        return await self._pass_back(request, response, origin, server)

    def _is_load(self, request: Request, origin: Origin) -> bool:
        """True for a passive load, False where the origin is allowed as a whole. Raises Denied for everything else."""
        origins, kind = self._boundary.origins, subresources.kind_of(request)
        if self._inside is None and origins.allows_origin(origin):
            return False
        if origins.subresources(origin) == "no":
            raise _no_rule(origin, kind)
        if problem := subresources.problem(request):
            reason = (
                f"only passive loads from {origin} are allowed; {problem}: if that is meant, say --allow {origin.rule}"
            )
            raise Denied(403, reason, _refused(origin, kind), bare=True)
        return True

    async def _switch(self, response: Response, server: Link) -> bool:
        """The server has agreed to leave HTTP (a WebSocket asked for without a tunnel)."""
        try:
            await self._link.write(response_head(response, b"Upgrade"))
            if self._early:
                await server.write(self._early)
            await join(self._link, server, self._limits)
        finally:
            server.writer.close()
        return False

    async def _exchange(
        self, request: Request, origin: Origin, head: bytes, framing: Framing, load: bool
    ) -> tuple[Link, Response]:
        """Sends the request and reads the head of its final response."""
        repeatable = framing == 0 and request.method in _SAFE
        server = self._take_upstream(origin) if repeatable else None
        if server is not None:
            try:
                return server, await self._ask(server, head, 0)
            except (OSError, Denied):
                server.writer.close()  # closed by the server while it was idle; nothing was answered: ask anew
        server = await self._boundary.connect(origin, load=load)
        try:
            return server, await self._ask(server, head, framing)
        except BaseException:
            server.writer.close()
            raise

    async def _ask(self, server: Link, head: bytes, framing: Framing) -> Response:
        await server.write(head)
        await copy_body(framing, self._link.reader, server.write, self._limits.body_bytes)
        while True:
            try:
                response = await self._unless_gone(read_response(server.reader))
            except BadMessage as error:
                raise Denied(502, f"the server's answer cannot be read: {error}") from None
            if response is None:
                raise Denied(502, "the server closed the connection without an answer")
            if response.status == 407:
                raise Denied(502, "a server must not ask for the proxy's password")
            if response.status >= 200 or response.status == 101:
                return response

    async def _pass_back(self, request: Request, response: Response, origin: Origin, server: Link) -> bool:
        """Sends the response to the browser; True if the connection can serve another request."""
        self._upstream = (origin, server)  # closed with this connection at the latest
        try:
            framing = response_framing(response, request.method)
        except BadMessage as error:
            raise Denied(502, f"the server's answer cannot be read: {error}") from None
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

    def _take_upstream(self, origin: Origin) -> Link | None:
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


def _path(request: Request) -> bytes:
    """Of a request inside a tunnel. Raises BadMessage."""
    if not request.target.startswith(b"/"):
        raise BadMessage("inside a tunnel a request names a path")
    return request.target
