"""Recognises passive loads, the only requests that a rule such as `subresources:cdn.example` admits.

The allowlist proxy decides by the header `Sec-Fetch-Dest` (W3C Fetch Metadata). The browser adds it to every request to
an https address or to this machine, and a page can neither set nor change a header whose name begins with `Sec-`. A
request without it is refused. Not covered: a compromised renderer process can send a false header.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from envs.security.blocked_requests import RequestKind
from envs.security.http1 import BadMessage, Request, Response, request_framing

DESTINATIONS: Final[dict[bytes, RequestKind]] = {
    b"document": "document",
    b"iframe": "frame",
    b"frame": "frame",
    b"object": "frame",
    b"embed": "frame",
    b"script": "script",
    b"worker": "script",
    b"sharedworker": "script",
    b"serviceworker": "script",
    b"audioworklet": "script",
    b"paintworklet": "script",
    b"json": "script",
    b"style": "stylesheet",
    b"xslt": "stylesheet",
    b"image": "image",
    b"font": "font",
    b"audio": "media",
    b"video": "media",
    b"track": "media",
    b"empty": "fetch",
    b"manifest": "other",
    b"report": "other",
}
PASSIVE: Final = frozenset((b"script", b"style", b"image", b"font", b"audio", b"video", b"track"))
"""Admitted destinations."""
METHODS: Final = frozenset((b"GET", b"HEAD"))

_IDENTIFYING: Final = frozenset((b"cookie", b"authorization"))
_REMEMBERED: Final = frozenset((b"set-cookie", b"www-authenticate"))


def kind_of(request: Request) -> RequestKind | None:
    """The purpose of the request; None if the browser does not name one."""
    if request.values(b"upgrade"):
        return "websocket"
    destinations = request.values(b"sec-fetch-dest")
    return DESTINATIONS.get(destinations[0], "other") if len(destinations) == 1 else None


def problem(request: Request) -> str:
    """Why the request is no passive load; empty if it is one."""
    kind = kind_of(request)
    if kind is None:
        return "over plain http the browser does not name the purpose of a request"
    if kind == "websocket" or request.values(b"sec-fetch-dest") not in [[name] for name in PASSIVE]:
        return f"it requests a {kind}"
    if request.method not in METHODS or _has_body(request):
        return "it is more than a GET"
    return ""


def without_credentials(request: Request) -> Request:
    """*request* without cookies and passwords: an admitted load does not act with an account."""
    return replace(request, fields=tuple(field for field in request.fields if field[0] not in _IDENTIFYING))


def without_cookies(response: Response) -> Response:
    """*response* without the fields that set cookies or request a password."""
    return replace(response, fields=tuple(field for field in response.fields if field[0] not in _REMEMBERED))


def _has_body(request: Request) -> bool:
    try:
        return request_framing(request) != 0
    except BadMessage:
        return True
