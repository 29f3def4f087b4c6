"""The boundary below the model: a forwarding proxy on loopback that reaches allowed origins and nothing else.

Whatever a page or a model does, a request leaves the browser only through here: http in absolute form, https and
WebSockets as CONNECT tunnels (the browser's switches for that are in :mod:`envs.browser.chromium`). Guarantees:

  - No connection is opened, and no name looked up, for an origin that no rule covers; redirects are new requests.
  - Names are resolved here, once a connection, and the connection goes to the address that was judged. A name that
    leads to this machine or its link (127.0.0.1, 169.254.169.254) is refused unless the rules cover that address
    too: an allowed site must not be a door to local services.
  - Where only a rule for subresources covers an origin, its tunnel ends here (:mod:`envs.security.tls_termination`):
  each request is
    read, and only passive loads go on (:mod:`envs.security.subresources`), without cookies or passwords.
  - Where there are checks (:mod:`envs.security.outgoing_requests`), every tunnel ends here, and every request and
  WebSocket message
    passes them before any of it is sent.
  - Every refusal is recorded with its reason.
  - Every exchange is bounded in time, size and number.

Not promised: protection against other users of this machine (they gain nothing: what is allowed here they can
reach without), and inspection of what goes through any other tunnel.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from envs.security.addresses import Address, Resolve, is_localhost, leads_inward, look_up, parse_address, unreachable
from envs.security.allowlist import Origin, Origins
from envs.security.blocked_requests import Place, Tally
from envs.security.outgoing_requests import Checks
from envs.security.proxy_connection import Client
from envs.security.proxy_parts import USUAL_LIMITS, Denied, Limits, Link, Refused, refused_at
from envs.security.tls_termination import verified

CLOSE_S = 5.0
"""Longest wait for connections to end when the boundary closes."""


class Refusal(NamedTuple):
    """A request that was not let through."""

    origin: str
    """As far as it can be told; the scheme of a tunnel is guessed from its port."""
    reason: str


MAX_RECORDED: Final = 100_000
"""Refusals kept; a page can make them without end, `refusals` counts on."""

_MAX_UNREACHABLE = 100

_listening: set[int] = set()
"""Ports of all boundaries of this process: none may be used to reach another."""


class AllowlistProxy:
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
        self.checks = Checks()
        """What every request that can be read passes before any of it is sent. As long as there is any, all tunnels end
        here: the browser must accept the key of :mod:`envs.security.tls_termination`."""
        self.may_read_tls = False
        """Whether the browser accepts that key; its launcher knows."""
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
            await Client(self, Link(reader, writer)).serve(busy=len(self._tasks) > self.limits.connections)
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

    async def connect(self, origin: Origin, *, load: bool = False, tls: bool = False) -> Link:
        """A connection to an origin that the rules cover, for a *load* or for everything; with *tls* the certificate is
        verified. Raises Denied."""
        try:
            async with asyncio.timeout(self.limits.connect_s):
                return await self._connect(origin, load, tls)
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

    async def _connect(self, origin: Origin, load: bool, tls: bool) -> Link:
        secured = self._tls(origin) if tls else {}
        if routed := self.routes.get(str(origin)):
            return Link(*await asyncio.open_connection(*routed, limit=self.limits.head_bytes, **secured))
        addresses = [origin.host] if parse_address(origin.host) else await self._resolve(origin.host)
        failure = OSError("the name has no address")
        for address in addresses:
            self._judge_address(origin, address, load)
            try:
                made = await asyncio.open_connection(address, origin.port, limit=self.limits.head_bytes, **secured)
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
            raise Denied(403, f"{address!r} is no address", refused_at(origin, allow=""))
        if parsed.is_loopback and origin.port in _listening:
            raise Denied(403, "this is a run's own boundary", refused_at(origin, allow=""))
        if is_localhost(origin.host) or self._covers(origin, parsed, load):
            return
        if leads_inward(parsed):
            reason = f"{origin.host} leads to {parsed} on this machine or its link; allow {parsed} too if that is meant"
            raise Denied(403, reason, refused_at(origin, allow=_bare(parsed)))
        if load and not parsed.is_global and self.origins.subresources(origin) == "any":
            rule = f"subresources:{origin.rule}"
            reason = f"{origin.host} leads to {parsed}, no public address: if that is meant, say --allow {rule}"
            raise Denied(403, reason, refused_at(origin, allow=rule))

    def _covers(self, origin: Origin, address: Address, load: bool) -> bool:
        """Whether a rule names the very *address*."""
        there = Origin(origin.scheme, str(address), origin.port)
        named = load and self.origins.subresources(there) == "named"
        return named or self.origins.allows_tunnel(there.host, there.port)


def _bare(address: Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)
