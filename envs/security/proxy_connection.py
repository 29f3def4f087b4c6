"""Serves one connection of the browser to the allowlist proxy."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from envs.security import subresources
from envs.security.allowlist import Origin, canonical_host
from envs.security.http1 import (
    BLOCK,
    BadMessage,
    Framing,
    Request,
    Response,
    TooLarge,
    copy_body,
    is_upgrade,
    read_body_start,
    read_request,
    read_response,
    request_framing,
    request_head,
    response_framing,
    response_head,
    unchunked,
)
from envs.security.outgoing_requests import BODY_BYTES, MESSAGE, Outgoing, Stopped, outgoing, without_compression
from envs.security.proxy_parts import Denied, Link, Proxy, Refused, join, no_rule, refused_at, shown, target_of
from envs.security.tls_termination import begins_tls, proxy_certificate
from envs.security.upstream_proxy import UpstreamProxy
from envs.security.web_sockets import PrefixedReader, pass_messages

T = TypeVar("T")

_TUNNEL = re.compile(rb"(\[[^\]]+\]|[^:@/]+):([0-9]{1,5})")
_SAFE = frozenset((b"GET", b"HEAD", b"OPTIONS"))


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request on its way to the server."""

    request: Request
    origin: Origin
    path: bytes
    start: bytes
    """The part of the body that was read."""
    framing: Framing
    """Of the rest."""

    def start_for(self, relay: UpstreamProxy | None) -> bytes:
        """The head and the part of the body that was read, for the server or for an upstream proxy."""
        address = str(self.origin).encode()
        host = address.partition(b"://")[2]
        if relay is None:
            return request_head(self.request, host, self.path) + self.start
        return request_head(self.request, host, address + self.path, relay.fields) + self.start


class ClientConnection:
    """Serves one connection of the browser: any number of requests, or one tunnel."""

    def __init__(self, proxy: Proxy, link: Link) -> None:
        self._proxy = proxy
        self._limits = proxy.limits
        self._link = link
        self._early = b""
        """Bytes read while waiting for the browser to disconnect."""
        self._kept: tuple[Origin, Link] | None = None
        """The server connection of the last request, if it may be reused."""
        self._inside: Origin | None = None
        """The origin of the requests inside a terminated tunnel."""
        self._all_inside = False
        """True: every request inside the tunnel is allowed. False: passive loads only."""

    async def serve(self, *, busy: bool) -> None:
        try:
            while await self._serve_one(busy):
                pass
        finally:
            self._drop_kept()

    async def _serve_one(self, busy: bool) -> bool:
        """Answers one request; False if the connection has ended."""
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
            return await self._forward(request)
        except Stopped as stopped:
            await self._link.write(stopped.answer)
        except Denied as denied:
            if denied.refused is not None:
                self._proxy.refuse(denied.refused, denied.reason)
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
            raise Denied(403, "the host cannot be parsed", Refused(shown(request.target)))
        port = int(match.group(2))
        origin = Origin("ws" if port == 80 else "https", host, port)
        if not self._proxy.origins.allows_tunnel(host, port):
            if origin.scheme != "https" or self._proxy.origins.subresources(origin) == "no":
                raise no_rule(origin, "websocket" if port == 80 else None)
            await self._end_tunnel(origin)
            return
        if self._proxy.checks:
            self._all_inside = True
            await self._end_tunnel(origin)
            return
        server = await self._proxy.connect(origin)
        try:
            await self._link.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await join(self._link, server, self._limits)
        finally:
            server.writer.close()

    async def _end_tunnel(self, origin: Origin) -> None:
        """Terminates the tunnel: acts as the server and checks every request inside. If all requests are allowed, the
        tunnel may be without TLS, as for a `ws:` WebSocket."""
        transport = self._link.transport
        if self._all_inside:
            transport.pause_reading()
        await self._link.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if self._all_inside and not await self._begins_tls():
            origin = origin._replace(scheme="http")
            transport.resume_reading()
        elif not await self._start_tls(origin):
            return
        else:
            origin = origin._replace(scheme="https")
        self._inside = origin
        while await self._serve_one(busy=False):
            pass

    async def _begins_tls(self) -> bool:
        async with asyncio.timeout(self._limits.idle_s):
            return await begins_tls(self._link.transport)

    async def _start_tls(self, origin: Origin) -> bool:
        try:
            async with asyncio.timeout(self._limits.connect_s):
                await self._link.writer.start_tls(proxy_certificate().context)
        except (ssl.SSLError, TimeoutError):
            self._proxy.refuse(refused_at(origin), f"no TLS, or not with this key, in a tunnel to {origin}")
            return False
        return True

    async def _forward(self, request: Request) -> bool:
        origin, path = target_of(request) if self._inside is None else (self._inside, _path(request))
        load = self._is_load(request, origin)
        request = subresources.without_credentials(request) if load else request
        framing = request_framing(request)
        start = b""
        if self._proxy.checks:
            request = without_compression(request)
            start, framing = await self._checked(request, origin, path, framing)
        async with asyncio.timeout(self._limits.exchange_s):
            server, response = await self._exchange(Exchange(request, origin, path, start, framing), load)
            if response.status != 101 or load:
                response = subresources.without_cookies(response) if load else response
                return await self._pass_back(request, response, origin, server)
        return await self._switch(request, response, origin, path, server)

    async def _checked(self, request: Request, origin: Origin, path: bytes, framing: Framing) -> tuple[bytes, Framing]:
        """Runs the checks on the beginning of the body. Returns it and the framing of the rest. Raises Stopped."""
        async with asyncio.timeout(self._limits.exchange_s):
            start, rest = await read_body_start(framing, self._link.reader, BODY_BYTES)
        body = unchunked(start) if framing == "chunked" else start
        sent = outgoing(request, origin, path, body, is_whole=rest == 0)
        checking = self._run_checks(sent)
        await (checking if rest or sent.may_be_beacon else self._unless_gone(checking))
        return start, rest

    async def _run_checks(self, sent: Outgoing) -> None:
        """Raises Stopped if a check stops the request."""
        if problem := await self._proxy.checks.problem(sent):
            raise Stopped(problem, opens_page=sent.opens_page)

    def _is_load(self, request: Request, origin: Origin) -> bool:
        """True for an admitted passive load, False if the origin is allowed completely. Raises Denied for other
        requests."""
        origins, kind = self._proxy.origins, subresources.kind_of(request)
        if self._all_inside or (self._inside is None and origins.allows_origin(origin)):
            return False
        if origins.subresources(origin) == "no":
            raise no_rule(origin, kind)
        if problem := subresources.problem(request):
            reason = f"only passive loads from {origin} are allowed; {problem}: if intended, use --allow {origin.rule}"
            raise Denied(403, reason, refused_at(origin, kind), bare=True)
        return True

    async def _switch(self, request: Request, response: Response, origin: Origin, path: bytes, server: Link) -> bool:
        """Forwards a connection that the server has upgraded to a WebSocket."""
        early, self._early = self._early, b""
        try:
            await self._link.write(response_head(response, b"Upgrade"))
            if self._proxy.checks:
                sent = outgoing(request, origin, path, b"", is_whole=True)
                await join(self._link, server, self._limits, self._messages(sent, early, server))
            else:
                if early:
                    await server.write(early)
                await join(self._link, server, self._limits)
        except Stopped:
            pass  # the page sees that the connection ends
        finally:
            server.writer.close()
        return False

    async def _messages(self, handshake: Outgoing, early: bytes, server: Link) -> None:
        async def check(text: bytes, is_whole: bool) -> None:
            await self._run_checks(replace(handshake, method=MESSAGE, body=text, is_whole=is_whole))

        await pass_messages(PrefixedReader(early, self._link.reader), server.write, check, self._limits.body_bytes)

    async def _exchange(self, exchange: Exchange, load: bool) -> tuple[Link, Response]:
        """Sends the request and reads the head of its final response."""
        request, origin = exchange.request, exchange.origin
        repeatable = request.method in _SAFE and request_framing(request) == 0
        server = self._take_kept(origin) if repeatable else None
        if server is not None:
            try:
                return server, await self._ask(server, exchange)
            except (OSError, Denied):
                server.writer.close()  # closed by the server while idle and nothing was answered: retry
        secured = origin.scheme == "https"
        server = await self._proxy.connect(origin, load=load, tls=secured, relayed=not is_upgrade(request))
        try:
            return server, await self._ask(server, exchange)
        except BaseException:
            server.writer.close()
            raise

    async def _ask(self, server: Link, exchange: Exchange) -> Response:
        await server.write(exchange.start_for(server.relay))
        await copy_body(exchange.framing, self._link.reader, server.write, self._limits.body_bytes)
        while True:
            try:
                response = await self._unless_gone(read_response(server.reader))
            except BadMessage as error:
                raise Denied(502, f"the server's response cannot be read: {error}") from None
            if response is None:
                raise Denied(502, "the server closed the connection without an answer")
            if response.status == 407:
                reason = server.relay.refusal if server.relay else "a server must not request proxy authentication"
                raise Denied(502, reason)
            if response.status >= 200 or response.status == 101:
                return response

    async def _pass_back(self, request: Request, response: Response, origin: Origin, server: Link) -> bool:
        """Sends the response to the browser; True if the connection can serve another request."""
        self._kept = (origin, server)  # closed with this connection at the latest
        try:
            framing = response_framing(response, request.method)
        except BadMessage as error:
            raise Denied(502, f"the server's response cannot be read: {error}") from None
        keep = framing != "until_close" and request.keep_alive
        await self._link.write(response_head(response, b"keep-alive" if keep else b"close"))
        copying = copy_body(framing, server.reader, self._link.write, self._limits.body_bytes)
        try:
            await (copying if isinstance(framing, int) and framing <= BLOCK else self._unless_gone(copying))
        except BadMessage:
            return False  # the head was sent: only a broken connection shows the browser that the body is incomplete
        if not response.keep_alive:
            self._drop_kept()
        return keep

    async def _unless_gone(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of *work*. If the browser disconnects, cancels *work* and raises ConnectionError."""
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
            _, early = await asyncio.gather(task, watch, return_exceptions=True)
            if isinstance(early, bytes):
                self._early += early

    def _take_kept(self, origin: Origin) -> Link | None:
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        if kept[0] == origin and not kept[1].reader.at_eof():
            return kept[1]
        kept[1].writer.close()
        return None

    def _drop_kept(self) -> None:
        if self._kept is not None:
            self._kept[1].writer.close()
            self._kept = None


def _path(request: Request) -> bytes:
    """The path of a request inside a tunnel. Raises BadMessage."""
    if not request.target.startswith(b"/"):
        raise BadMessage("inside a tunnel a request names a path")
    return request.target
