"""One connection of the browser to the boundary's proxy: what is read from it, and what is sent on."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

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
    read_body_start,
    read_request,
    read_response,
    request_framing,
    request_head,
    response_framing,
    response_head,
    unchunked,
)
from envs.security.outgoing_requests import BODY_BYTES, MESSAGE, Outgoing, Stopped, outgoing, uncompressed
from envs.security.proxy_parts import Denied, Link, Refused, join, no_rule, refused_at, shown, target_of
from envs.security.tls_termination import begins_tls, own_end
from envs.security.web_sockets import Early, pass_messages

if TYPE_CHECKING:
    from envs.security.allowlist_proxy import AllowlistProxy

T = TypeVar("T")

_TUNNEL = re.compile(rb"(\[[^\]]+\]|[^:@/]+):([0-9]{1,5})")
_SAFE = frozenset((b"GET", b"HEAD", b"OPTIONS"))


class Client:
    """One connection of the browser: any number of requests, or one tunnel."""

    def __init__(self, boundary: AllowlistProxy, link: Link) -> None:
        self._boundary = boundary
        self._limits = boundary.limits
        self._link = link
        self._early = b""
        """Read while watching whether the browser had gone."""
        self._upstream: tuple[Origin, Link] | None = None
        """The server's connection of the last request, if it may be used again."""
        self._inside: Origin | None = None
        """Where the requests inside a tunnel go that ends here."""
        self._all_inside = False
        """Every request inside may go there, not loads alone."""

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
            return await self._forward(request)
        except Stopped as stopped:
            await self._link.write(stopped.answer)
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
                raise no_rule(origin, "websocket" if port == 80 else None)
            await self._end_tunnel(origin)
            return
        if self._boundary.checks:
            self._all_inside = True
            await self._end_tunnel(origin)
            return
        server = await self._boundary.connect(origin)
        try:
            await self._link.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await join(self._link, server, self._limits)
        finally:
            server.writer.close()

    async def _end_tunnel(self, origin: Origin) -> None:
        """Is the server, to the browser: reads and judges every request inside the tunnel. Where all may pass, it may
        hold no TLS: a WebSocket that needs none does not."""
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
                await self._link.writer.start_tls(own_end().context)
        except (ssl.SSLError, TimeoutError):
            self._boundary.refuse(refused_at(origin), f"not TLS, or not with this key, in a tunnel to {origin}")
            return False
        return True

    async def _forward(self, request: Request) -> bool:
        origin, path = target_of(request) if self._inside is None else (self._inside, _path(request))
        load = self._is_load(request, origin)
        request = subresources.anonymous(request) if load else request
        framing = request_framing(request)
        start = b""
        if self._boundary.checks:
            request = uncompressed(request)
            start, framing = await self._checked(request, origin, path, framing)
        head = request_head(request, str(origin).partition("://")[2].encode(), path)
        async with asyncio.timeout(self._limits.exchange_s):
            server, response = await self._exchange(request, origin, head + start, framing, load)
            if response.status != 101 or load:
                response = subresources.forgotten(response) if load else response
                return await self._pass_back(request, response, origin, server)
        return await self._switch(request, response, origin, path, server)

    async def _checked(self, request: Request, origin: Origin, path: bytes, framing: Framing) -> tuple[bytes, Framing]:
        """The beginning of the body, which the checks have seen, and what is left of it. Raises Stopped."""
        async with asyncio.timeout(self._limits.exchange_s):
            start, rest = await read_body_start(framing, self._link.reader, BODY_BYTES)
        body = unchunked(start) if framing == "chunked" else start
        sent = outgoing(request, origin, path, body, is_whole=rest == 0)
        asking = self._ask_checks(sent)
        await (asking if rest or sent.is_left_behind else self._unless_gone(asking))
        return start, rest

    async def _ask_checks(self, sent: Outgoing) -> None:
        """Raises Stopped."""
        if problem := await self._boundary.checks.problem(sent):
            raise Stopped(problem, opens_page=sent.opens_page)

    def _is_load(self, request: Request, origin: Origin) -> bool:
        """True for a passive load, False where the origin is allowed as a whole. Raises Denied for everything else."""
        origins, kind = self._boundary.origins, subresources.kind_of(request)
        if self._all_inside or (self._inside is None and origins.allows_origin(origin)):
            return False
        if origins.subresources(origin) == "no":
            raise no_rule(origin, kind)
        if problem := subresources.problem(request):
            reason = (
                f"only passive loads from {origin} are allowed; {problem}: if that is meant, say --allow {origin.rule}"
            )
            raise Denied(403, reason, refused_at(origin, kind), bare=True)
        return True

    async def _switch(self, request: Request, response: Response, origin: Origin, path: bytes, server: Link) -> bool:
        """The server has agreed to leave HTTP (a WebSocket, outside a tunnel or in one that ends here)."""
        early, self._early = self._early, b""
        try:
            await self._link.write(response_head(response, b"Upgrade"))
            if self._boundary.checks:
                sent = outgoing(request, origin, path, b"", is_whole=True)
                await join(self._link, server, self._limits, self._messages(sent, early, server))
            else:
                if early:
                    await server.write(early)
                await join(self._link, server, self._limits)
        except Stopped:
            pass  # the connection ends, which is what the page is told
        finally:
            server.writer.close()
        return False

    async def _messages(self, handshake: Outgoing, early: bytes, server: Link) -> None:
        async def check(text: bytes, is_whole: bool) -> None:
            await self._ask_checks(replace(handshake, method=MESSAGE, body=text, is_whole=is_whole))

        await pass_messages(Early(early, self._link.reader), server.write, check, self._limits.body_bytes)

    async def _exchange(
        self, request: Request, origin: Origin, head: bytes, framing: Framing, load: bool
    ) -> tuple[Link, Response]:
        """Sends the request and reads the head of its final response."""
        repeatable = request.method in _SAFE and request_framing(request) == 0
        server = self._take_upstream(origin) if repeatable else None
        if server is not None:
            try:
                return server, await self._ask(server, head, 0)
            except (OSError, Denied):
                server.writer.close()  # closed by the server while it was idle; nothing was answered: ask anew
        server = await self._boundary.connect(origin, load=load, tls=origin.scheme == "https")
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
