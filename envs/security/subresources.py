"""Which requests are passive loads: what a rule such as `subresources:cdn.example` lets through, and nothing else.

The boundary decides by the request's own header: the browser writes `Sec-Fetch-Dest` (W3C Fetch Metadata) into every
request to an https address or to this machine, and a page can neither set nor change a header whose name begins with
`Sec-`. A request without it is refused. Not covered: a renderer process that was taken over can lie about its loads.
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
"""Destinations that are let through."""
METHODS: Final = frozenset((b"GET", b"HEAD"))

_IDENTIFYING: Final = frozenset((b"cookie", b"authorization"))
_REMEMBERED: Final = frozenset((b"set-cookie", b"www-authenticate"))


def kind_of(request: Request) -> RequestKind | None:
    """What the request is for; None where the browser does not say."""
    if request.values(b"upgrade"):
        return "websocket"
    named = request.values(b"sec-fetch-dest")
    return DESTINATIONS.get(named[0], "other") if len(named) == 1 else None


def problem(request: Request) -> str:
    """Why the request is no passive load; empty where it is one."""
    kind = kind_of(request)
    if kind is None:
        return "over plain http the browser does not say what a request is for"
    if kind == "websocket" or request.values(b"sec-fetch-dest") not in [[name] for name in PASSIVE]:
        return f"it asks for a {kind}"
    if request.method not in METHODS or _has_body(request):
        return "it is more than a GET"
    return ""


def anonymous(request: Request) -> Request:
    """*request* without what tells who asks: an admitted load acts on nobody's account."""
    return replace(request, fields=tuple(field for field in request.fields if field[0] not in _IDENTIFYING))


def forgotten(response: Response) -> Response:
    """*response* without what the browser would say at the next request, or ask for a password about."""
    return replace(response, fields=tuple(field for field in response.fields if field[0] not in _REMEMBERED))


def _has_body(request: Request) -> bool:
    try:
        return request_framing(request) != 0
    except BadMessage:
        return True
