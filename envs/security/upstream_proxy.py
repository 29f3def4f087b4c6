"""The proxy of a network, behind which the sites are reached: the allowlist proxy connects through it.

A request that the rules refuse does not reach it. Names are resolved there, so the address that a name leads to is not
checked here; an address in a URL is. This machine (`localhost`, 127.0.0.0/8, ::1) and the hosts of `bypass` are
reached directly.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from dataclasses import dataclass, field
from typing import Final

from envs.core.errors import BadInput
from envs.core.settings import ProxySettings
from envs.security.addresses import connection_error, is_localhost, parse_address
from envs.security.allowlist import Origin, Origins, origin_of
from envs.security.http1 import BadMessage, Response, read_response

_VARIABLES: Final = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


class UpstreamError(OSError):
    """The upstream proxy cannot be reached, or refuses. The message is one line."""


@dataclass(frozen=True, slots=True)
class UpstreamProxy:
    """Connects through an HTTP proxy."""

    host: str
    port: int
    credentials: str | None = None
    """`USER:PASSWORD` for HTTP Basic; sent to this proxy only."""
    bypass: Origins = field(default_factory=Origins)
    """Hosts that are reached directly."""

    def __str__(self) -> str:
        return f"http://{Origin('http', self.host, self.port).authority}"

    def serves(self, origin: Origin) -> bool:
        """Whether *origin* is reached through this proxy."""
        return not _is_here(origin) and not self.bypass.allows_tunnel(origin.host, origin.port)

    @property
    def fields(self) -> tuple[bytes, ...]:
        """Lines of a request's head that are for this proxy."""
        if self.credentials is None:
            return ()
        return (b"Proxy-Authorization: Basic " + base64.b64encode(self.credentials.encode()),)

    async def connect(self, limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to this proxy, which takes http requests in absolute form. *limit*: most bytes of a head. Raises
        UpstreamError."""
        try:
            return await asyncio.open_connection(self.host, self.port, limit=limit)
        except OSError as error:
            reason = connection_error(self.host, self.port, error)
            raise UpstreamError(f"the proxy {self} cannot be reached: {reason}") from error

    async def tunnel(
        self, origin: Origin, limit: int, tls: ssl.SSLContext | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Opens a tunnel (CONNECT) to *origin*; with *tls* its certificate is verified. Raises UpstreamError, or
        OSError for the server's TLS."""
        reader, writer = await self.connect(limit)
        try:
            place = origin.authority.encode()
            lines = (b"CONNECT %s HTTP/1.1" % place, b"Host: " + place, *self.fields)
            writer.write(b"\r\n".join(lines) + b"\r\n\r\n")
            await writer.drain()
            self._check(await _response(reader, self))
            if tls is not None:
                await writer.start_tls(tls, server_hostname=origin.host)
        except BaseException:
            writer.close()
            raise
        return reader, writer

    def _check(self, response: Response) -> None:
        if response.status == 407:
            raise UpstreamError(self.refusal)
        if not 200 <= response.status < 300:
            raise UpstreamError(f"the proxy {self} refuses the connection (status {response.status})")

    @property
    def refusal(self) -> str:
        """What a response with status 407 means."""
        if self.credentials is None:
            return f"the proxy {self} requires a name and a password: credentials under [session.proxy]"
        return f"the proxy {self} does not accept its credentials"


async def _response(reader: asyncio.StreamReader, proxy: UpstreamProxy) -> Response:
    """The first response of *proxy*. Raises UpstreamError."""
    try:
        response = await read_response(reader)
    except BadMessage as error:
        raise UpstreamError(f"the answer of the proxy {proxy} cannot be read: {error}") from None
    if response is None:
        raise UpstreamError(f"the proxy {proxy} closed the connection without an answer")
    return response


def proxy_variable(url: str) -> str:
    """The environment variable by which other programs would find a proxy to *url*; empty if there is none."""
    origin = origin_of(url)
    if origin is None or _is_here(origin):
        return ""
    return next((name for name in _VARIABLES if os.environ.get(name)), "")


def _is_here(origin: Origin) -> bool:
    """Whether *origin* is this machine by its name or its loopback address."""
    address = parse_address(origin.host)
    return is_localhost(origin.host) or (address is not None and address.is_loopback)


def upstream_proxy(settings: ProxySettings | None) -> UpstreamProxy | None:
    """The proxy of *settings*, with the credentials of its environment variable. Raises BadInput if the variable is not
    set or a host of `bypass` is invalid."""
    if settings is None:
        return None
    origin = origin_of(settings.server)
    if origin is None:
        raise BadInput(f"session.proxy.server: {settings.server!r} is no address, such as http://proxy.example:3128")
    bypass = Origins.parse(settings.bypass)
    if bypass.has_subresources:
        raise BadInput("session.proxy.bypass: a host is reached directly for every request: leave out subresources:")
    return UpstreamProxy(origin.host, origin.port, _credentials(settings.credentials), bypass)


def _credentials(source: str | None) -> str | None:
    if source is None:
        return None
    variable = source.removeprefix("env:")
    value = os.environ.get(variable, "")
    if ":" not in value or not value.isprintable():
        raise BadInput(f"session.proxy.credentials: set {variable} to USER:PASSWORD")
    return value
