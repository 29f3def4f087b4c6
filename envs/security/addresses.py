"""Resolves host names and classifies addresses as internal: this machine, its link, or a cloud metadata service."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Turns a host name into its addresses, best first; raises OSError."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure
        "192.0.0.192",  # Oracle
        "fd00:42::42",  # Scaleway
        "fd00:ec2::/32",  # AWS
        "fd20:ce::254",  # Google
    )
)
"""Cloud metadata services with an address that is not link-local. They give credentials to every program."""
_EMBEDDING: Final = tuple(
    (ipaddress.IPv6Network(network), shift)
    for network, shift in (
        ("::/96", 0),  # IPv4-compatible
        ("::ffff:0:0/96", 0),  # IPv4-mapped
        ("64:ff9b::/96", 0),  # NAT64
        ("64:ff9b:1::/48", 0),  # NAT64 of a site
        ("2002::/16", 80),  # 6to4
    )
)
"""IPv6 networks whose addresses lead to an IPv4 address, and the number of bits behind it."""
_NO_ONES: Final = {4: ipaddress.ip_address("240.0.0.1"), 6: ipaddress.ip_address("100::1")}
"""Reserved addresses, which no interface has."""


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
    """True for addresses of this machine (loopback, unspecified, its interfaces), of its link (link-local, multicast)
    and of cloud metadata services, also if an IPv6 address embeds them (NAT64, 6to4).

    False for the other addresses of private networks (RFC 1918): sites of an intranet are legitimate targets. Raises
    OSError if this machine cannot be asked for its addresses.
    """
    return any(_is_internal(each) for each in _reached(address))


def is_public(address: Address) -> bool:
    """True for an address of the public internet, also where an IPv6 address embeds it."""
    return all(each.is_global for each in _reached(address))


def _reached(address: Address) -> tuple[Address, ...]:
    """*address*, and the IPv4 address that it embeds."""
    if address.version == 4:
        return (address,)
    embedded = (int(address) >> shift & 0xFFFF_FFFF for network, shift in _EMBEDDING if address in network)
    return (address, *map(ipaddress.IPv4Address, embedded))


def _is_internal(address: Address) -> bool:
    if address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast:
        return True
    return any(address in network for network in _METADATA) or _is_own(address)


def _is_own(address: Address) -> bool:
    """True if an interface of this machine has *address*: a socket can be bound to it.

    Where the kernel binds sockets to every address (`ip_nonlocal_bind`), the address counts from which this machine
    would send to *address*.
    """
    if not _can_bind(address):
        return False
    return not _can_bind(_NO_ONES[address.version]) or _source_to(address) == address


def _can_bind(address: Address) -> bool:
    try:
        with _udp_socket(address) as bound:
            bound.bind((str(address), 0))
    except OSError as error:
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return False
        raise
    return True


def _source_to(address: Address) -> Address | None:
    with _udp_socket(address) as connected:
        connected.connect((str(address), 9))  # sends nothing
        return parse_address(str(connected.getsockname()[0]))


def _udp_socket(address: Address) -> socket.socket:
    return socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM)


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
