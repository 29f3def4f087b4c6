"""Resolves host names and classifies addresses as internal: on this machine or its link."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Turns a host name into its addresses, best first; raises OSError."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


async def resolve_host(host: str) -> Sequence[str]:
    """Resolves *host* with the system's resolver. `localhost` and its subdomains are this machine (RFC 6761).

    Raises OSError.
    """
    if is_localhost(host):
        return ("127.0.0.1", "::1")
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in entries))


def is_localhost(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def parse_address(text: str) -> Address | None:
    """*text* as an address; None for a host name. An IPv4-mapped IPv6 address becomes the IPv4 address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def is_internal(address: Address) -> bool:
    """True for loopback, link-local (including cloud metadata services), unspecified and multicast addresses.

    False for private networks (RFC 1918): sites of an intranet are legitimate targets.
    """
    return address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast


def connection_error(host: str, port: int, error: OSError) -> str:
    """Describes in one line why a connection failed. For TLS errors it names the problem of the certificate."""
    match error:
        case socket.gaierror(errno=socket.EAI_AGAIN):
            return f"the host name {host} does not resolve: no name server answered (is there a network?)"
        case socket.gaierror():
            return f"the host name {host} does not resolve"
        case ConnectionRefusedError():
            return f"connection refused: nothing listens at port {port}"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not valid: {error.verify_message}"
        case ssl.SSLError():
            return "the server does not use TLS"
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number).lower()
        case _:
            return str(error)
