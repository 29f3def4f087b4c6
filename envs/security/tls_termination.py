"""Terminates TLS in the allowlist proxy, where requests must be read before they may be forwarded.

The proxy terminates tunnels to hosts that only a `subresources:` rule covers, and every tunnel if requests are checked.
Chromium accepts one key (`--ignore-certificate-errors-spki-list`), which is generated for this process, is never
written to disk, and is trusted by no other program. The connection to the server uses TLS with a verified certificate.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

VALID_FOR = timedelta(days=365)
_HANDSHAKE = b"\x16"
"""The first byte of a TLS connection: the type of its first record."""


@dataclass(frozen=True, slots=True)
class ProxyCertificate:
    """The key and certificate of this process."""

    context: ssl.SSLContext
    """For the server side; HTTP/1.1 only."""
    fingerprint: str
    """SHA-256 of the public key (SubjectPublicKeyInfo), base64, for Chromium's switch."""

    @property
    def switch(self) -> str:
        return f"--ignore-certificate-errors-spki-list={self.fingerprint}"


@cache
def proxy_certificate() -> ProxyCertificate:
    """Generates the key once per process, on first use."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Mira's allowlist proxy")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    dated = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + VALID_FOR)
    certificate = dated.serial_number(x509.random_serial_number()).sign(key, hashes.SHA256())
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    context = _context(private + certificate.public_bytes(Encoding.PEM))
    return ProxyCertificate(context, base64.b64encode(hashlib.sha256(public).digest()).decode())


def _context(pem: bytes) -> ssl.SSLContext:
    """Loads *pem* from a file in memory, because `ssl` reads keys only from files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    handle = os.memfd_create("key")
    try:
        os.write(handle, pem)
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)
    return context


async def begins_tls(transport: asyncio.Transport) -> bool:
    """True if the next byte begins TLS; False if the peer closes. The byte is not consumed. Reading of the transport
    must be paused."""
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()
    # A second descriptor: asyncio does not allow waiting for one that a transport uses.
    with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as watched:
        loop.add_reader(watched, ready.set)
        try:
            await ready.wait()
            return watched.recv(1, socket.MSG_PEEK) == _HANDSHAKE
        finally:
            loop.remove_reader(watched)


@cache
def verified_context() -> ssl.SSLContext:
    """For connections to servers: trusts the authorities of the system and of `certifi`."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


@cache
def unverified_context() -> ssl.SSLContext:
    """For connections to servers without verification of certificates (`ignore_https_errors`)."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
