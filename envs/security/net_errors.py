"""Explains why an address did not open, from Chromium's network error and the proxy's failed connections.

For an address behind a tunnel, Chromium knows only that the tunnel failed (ERR_TUNNEL_CONNECTION_FAILED). The allowlist
proxy knows the cause: the name did not resolve, or the connection was refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from envs.security.allowlist import origin_of
from envs.security.blocked_requests import NOWHERE, Place

_ERROR = re.compile(r"net::(ERR_[A-Z0-9_]+)")
_TIMEOUT = re.compile(r"Timeout ([0-9]+)ms exceeded")
_OWN_SERVER: Final = "for a server of your own, set ignore_https_errors = true under [session] in a file for --config"
_CLOSED: Final = "the server closed the connection without an answer"
_NO_TLS: Final = "the server does not use TLS as browsers do: is it an http:// address?"

_REASONS: Final[Mapping[str, str]] = {
    "ERR_TUNNEL_CONNECTION_FAILED": "the allowlist proxy of this run made no connection",
    "ERR_CERT_AUTHORITY_INVALID": f"its certificate is signed by no authority that this browser trusts; {_OWN_SERVER}",
    "ERR_CERT_COMMON_NAME_INVALID": f"its certificate is for another host name; {_OWN_SERVER}",
    "ERR_CERT_DATE_INVALID": f"its certificate has expired, or is not valid yet; {_OWN_SERVER}",
    "ERR_SSL_PROTOCOL_ERROR": _NO_TLS,
    "ERR_SSL_VERSION_OR_CIPHER_MISMATCH": _NO_TLS,
    "ERR_EMPTY_RESPONSE": _CLOSED,
    "ERR_CONNECTION_CLOSED": _CLOSED,
    "ERR_CONNECTION_RESET": _CLOSED,
    "ERR_SOCKET_NOT_CONNECTED": _CLOSED,
    "ERR_TOO_MANY_REDIRECTS": "it redirects too many times",
    "ERR_UNSAFE_PORT": "browsers refuse to connect to this port",
    "ERR_INVALID_HTTP_RESPONSE": "the server's response is no HTTP",
    "ERR_INVALID_AUTH_CREDENTIALS": "the server requires a name and a password: http_credentials under [session]",
    "ERR_HTTP_RESPONSE_CODE_FAILURE": "the server answered with an error and no page",
    "ERR_RESPONSE_HEADERS_TOO_BIG": "the headers of the server's response are too large",
    "ERR_CONTENT_DECODING_FAILED": "the server's response cannot be decompressed",
}


def explain_navigation_error(message: str, url: str, unreachable: Mapping[Place, str]) -> str:
    """Explains why *url* did not open, from Playwright's *message*; empty if that names no network error.

    *unreachable*: failed connections of the proxy, oldest first.
    """
    if timeout := _TIMEOUT.search(message):
        return f"it did not load within {int(timeout[1]) / 1000:g} s"
    match = _ERROR.search(message)
    if match is None:
        return ""
    name = match[1]
    if name == "ERR_TUNNEL_CONNECTION_FAILED" and unreachable:
        return connection_failure(url, unreachable)
    reason = _REASONS.get(name) or (
        f"its certificate is not valid; {_OWN_SERVER}" if name.startswith("ERR_CERT_") else ""
    )
    reason = reason or (_NO_TLS if name.startswith("ERR_SSL_") else "")
    return f"{reason} ({name})" if reason else name


def connection_failure(url: str, unreachable: Mapping[Place, str]) -> str:
    """Why the connection to *url* failed, else why the last connection did, which a redirect may have caused."""
    origin = origin_of(url)
    requested = Place(origin.host, origin.port) if origin else NOWHERE
    if requested in unreachable:
        return unreachable[requested]
    place = list(unreachable)[-1]
    return f"it leads to {place.host}, port {place.port}: {unreachable[place]}"
