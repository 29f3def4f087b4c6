"""Certificates for servers of the tests, generated on each call."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

DAY = timedelta(days=1)


def server_and_authorities(
    folder: Path, names: Sequence[str], *, age: timedelta = timedelta()
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts for a server with the host *names* and for a client that trusts it. *age* dates the certificate back;
    it expires after ten days."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC) - age
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.not_valid_before(now - DAY).not_valid_after(now + 10 * DAY)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    certificate = builder.serial_number(x509.random_serial_number()).sign(key, hashes.SHA256())
    shown = certificate.public_bytes(Encoding.PEM)
    file = folder / "server.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + shown)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=shown.decode())
