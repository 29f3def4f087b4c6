"""Names to addresses, and which addresses lead inward: to this machine or its link."""

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


async def look_up(host: str) -> Sequence[str]:
    """The system's resolver, except that `localhost` and names below it are this machine (RFC 6761). Raises OSError."""
    if is_localhost(host):
        return ("127.0.0.1", "::1")
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_localhost(host: str) -> bool:
    return host == "localhost" or host.endswith(".localhost")


def parse_address(text: str) -> Address | None:
    """*text* as an address, None where it is a name; an IPv4 address in IPv6 clothes is the IPv4 address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def leads_inward(address: Address) -> bool:
    """Loopback, link-local (cloud metadata services among them), unspecified and multicast addresses.

    Private networks (RFC 1918) are not among them: an intranet's sites are legitimate targets.
    """
    return address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast


def unreachable(host: str, port: int, error: OSError) -> str:
    """Why no connection was made, in words; of TLS errors, what was wrong with the certificate."""
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
            return "it does not speak TLS"
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number).lower()
        case _:
            return str(error)
