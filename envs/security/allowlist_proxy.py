"""The allowlist proxy: a forward proxy on loopback that connects to allowed origins only.

All requests of the browser pass it, whatever a page or a model does: http in absolute form, https and WebSockets as
CONNECT tunnels (:mod:`envs.browser.chromium` sets the browser's switches). Guarantees:

  - For an origin that no rule covers, no connection is opened and no name is resolved. Redirects are new requests.
  - The proxy resolves each name once per connection and connects to the address that it checked. A name that
    resolves to this machine (also by the address of an interface), its link, or a cloud metadata service is refused
    unless the rules cover that address too: an allowed site must not give access to local services.
  - If only a subresource rule covers an origin, the proxy terminates its TLS (:mod:`envs.security.tls_termination`),
    reads each request and forwards passive loads only (:mod:`envs.security.subresources`), without cookies or
    passwords.
  - If there are request checks (:mod:`envs.security.outgoing_requests`), the proxy terminates every tunnel. Every
    request and WebSocket message passes the checks before any of it is sent.
  - Every refusal is recorded with its reason.
  - Every exchange is bounded in time, size and number.

Not promised: protection against other users of this machine (they can access allowed servers without the proxy), and
inspection of tunnels that are not terminated.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from envs.core.settings import SessionSettings
from envs.security.addresses import (
    Address,
    Resolve,
    connection_error,
    is_internal,
    is_localhost,
    is_public,
    parse_address,
    resolve_host,
)
from envs.security.allowlist import Origin, Origins
from envs.security.blocked_requests import Place, RefusalCounter
from envs.security.outgoing_requests import Checks
from envs.security.proxy_connection import ClientConnection
from envs.security.proxy_parts import USUAL_LIMITS, Denied, Limits, Link, Refused, refused_at
from envs.security.tls_termination import unverified_context, verified_context
from envs.security.upstream_proxy import UpstreamProxy, upstream_proxy

CLOSE_S = 5.0
"""Longest wait for connections to end when the proxy closes."""


class Refusal(NamedTuple):
    """A request that the proxy refused."""

    origin: str
    """As far as it is known; the scheme of a tunnel is guessed from its port."""
    reason: str


MAX_RECORDED: Final = 100_000
"""Refusals kept, because a page can cause any number of them. `refusals` counts all."""

_MAX_UNREACHABLE = 100

_listening: set[int] = set()
"""Ports of all proxies of this process. No proxy may connect to another."""


class AllowlistProxy:
    """Serves one allowlist on one port. Use as `async with AllowlistProxy(origins) as proxy:`."""

    def __init__(
        self,
        origins: Origins,
        *,
        limits: Limits = USUAL_LIMITS,
        resolve: Resolve | None = None,
        routes: Mapping[str, tuple[str, int]] | None = None,
        authorities: ssl.SSLContext | None = None,
        upstream: UpstreamProxy | None = None,
    ) -> None:
        """*authorities*: certificate authorities for servers of subresources; None: the system's. *upstream*: the proxy
        behind which the servers are reached, except those of *routes*."""
        self.origins = origins
        self.routes = dict(routes or {})
        """Address and port of the servers of some origins (`http://shop.test`), used instead of name resolution.
        A route allows nothing: a rule must cover the origin. May be changed between requests."""
        self.limits = limits
        self.checks = Checks()
        """Checks that every readable request passes before any of it is sent. While there is one, the proxy terminates
        all tunnels: the browser must accept the key of :mod:`envs.security.tls_termination`."""
        self.may_read_tls = False
        """True if the browser accepts that key; set by the code that starts the browser."""
        self.blocked: list[str] = []
        """Origins refused so far, oldest first, at most MAX_RECORDED."""
        self.refused: list[Refusal] = []
        """The same refusals with reasons."""
        self.refusals = 0
        """Number of all refusals."""
        self.tally = RefusalCounter()
        """Refusals counted by host and port."""
        self.unreachable: dict[Place, str] = {}
        """Reasons of failed connections by target, oldest first, at most _MAX_UNREACHABLE. A session clears it before
        each action."""
        self._resolve = resolve or resolve_host
        self._authorities = authorities
        self._upstream = upstream
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
            await ClientConnection(self, Link(reader, writer)).serve(busy=len(self._tasks) > self.limits.connections)
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass  # the peer closed, or the proxy is closing: the connection has ended
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

    async def connect(self, origin: Origin, *, load: bool = False, tls: bool = False, relayed: bool = False) -> Link:
        """Connects to an origin that the rules cover, for a passive *load* or for any request. With *tls* the
        certificate is verified. *relayed*: an upstream proxy may forward the requests; else it is asked for a tunnel.
        Raises Denied."""
        try:
            async with asyncio.timeout(self.limits.connect_s):
                return await self._connect(origin, load, tls, relayed)
        except TimeoutError:
            raise self._unreachable(504, origin, f"no answer within {self.limits.connect_s:g} s") from None
        except OSError as error:
            raise self._unreachable(502, origin, connection_error(origin.host, origin.port, error)) from None

    def _unreachable(self, status: int, origin: Origin, reason: str) -> Denied:
        place = Place(origin.host, origin.port)
        self.unreachable.pop(place, None)
        self.unreachable[place] = reason
        if len(self.unreachable) > _MAX_UNREACHABLE:
            del self.unreachable[next(iter(self.unreachable))]
        return Denied(status, f"cannot connect to {origin}: {reason}")

    async def _connect(self, origin: Origin, load: bool, tls: bool, relayed: bool) -> Link:
        secured = self._tls(origin) if tls else {}
        if routed := self.routes.get(str(origin)):
            return Link(*await asyncio.open_connection(*routed, limit=self.limits.head_bytes, **secured))
        if self._upstream is not None and self._upstream.serves(origin):
            return await self._connect_through(self._upstream, origin, load, tls, relayed)
        addresses = [origin.host] if parse_address(origin.host) else await self._resolve(origin.host)
        failure = OSError("the name has no address")
        for address in addresses:
            self._check_address(origin, address, load)
            try:
                streams = await asyncio.open_connection(address, origin.port, limit=self.limits.head_bytes, **secured)
                return Link(*streams)
            except OSError as error:
                failure = error
        raise failure

    async def _connect_through(
        self, upstream: UpstreamProxy, origin: Origin, load: bool, tls: bool, relayed: bool
    ) -> Link:
        if parse_address(origin.host):
            self._check_address(origin, origin.host, load)
        if relayed and not tls:
            return Link(*await upstream.connect(self.limits.head_bytes), relay=upstream)
        context = self._context if tls else None
        return Link(*await upstream.tunnel(origin, self.limits.head_bytes, context))

    @property
    def _context(self) -> ssl.SSLContext:
        return self._authorities or verified_context()

    def _tls(self, origin: Origin) -> dict[str, Any]:
        return {"ssl": self._context, "server_hostname": origin.host}

    def _check_address(self, origin: Origin, address: str, load: bool) -> None:
        """Raises Denied if a name may not resolve to *address*."""
        parsed = parse_address(address)
        if parsed is None:
            raise Denied(403, f"{address!r} is not an address", refused_at(origin, allow=""))
        if parsed.is_loopback and origin.port in _listening:
            raise Denied(403, "this is the allowlist proxy of a run", refused_at(origin, allow=""))
        if is_localhost(origin.host) or self._covers(origin, parsed, load):
            return
        if is_internal(parsed):
            rule = _bare(parsed)
            reason = f"{origin.host} resolves to {parsed} on this machine or its link; if intended, allow {rule} too"
            raise Denied(403, reason, refused_at(origin, allow=rule))
        if load and not is_public(parsed) and self.origins.subresources(origin) == "any":
            rule = f"subresources:{origin.rule}"
            reason = f"{origin.host} resolves to {parsed}, no public address: if that is intended, use --allow {rule}"
            raise Denied(403, reason, refused_at(origin, allow=rule))

    def _covers(self, origin: Origin, address: Address, load: bool) -> bool:
        """True if a rule names exactly this *address*."""
        there = Origin(origin.scheme, str(address), origin.port)
        named = load and self.origins.subresources(there) == "named"
        return named or self.origins.allows_tunnel(there.host, there.port)


def proxy_of_session(settings: SessionSettings, origins: Origins) -> AllowlistProxy:
    """The proxy for a session on live sites. Raises BadInput if `settings.proxy` is wrong."""
    authorities = unverified_context() if settings.ignore_https_errors else None
    return AllowlistProxy(origins, authorities=authorities, upstream=upstream_proxy(settings.proxy))


def _bare(address: Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)
