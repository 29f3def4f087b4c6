"""Reports the requests of a session that the proxy refused, with the kinds that the browser reports.

The proxy knows the target of a tunnel, but not the kind of a request, which the browser reports. Only refused requests
are reported. They are counted by the browser's events if there are any, else by the proxy's refusals (WebSockets of
workers, speculative connections).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from playwright.async_api import BrowserContext, Request, WebSocket
from playwright.async_api import Error as PlaywrightError

from envs.security.allowlist import Origin, origin_of
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.blocked_requests import (
    BROWSERS_OWN,
    BlockedOrigin,
    Count,
    Place,
    RequestKind,
    merge_blocked_origins,
    sorted_kinds,
)

_MAX_SEEN: Final = 1_000
_KINDS: Final[dict[str, RequestKind]] = {
    "script": "script",
    "stylesheet": "stylesheet",
    "image": "image",
    "font": "font",
    "media": "media",
    "texttrack": "media",
    "xhr": "fetch",
    "fetch": "fetch",
    "eventsource": "fetch",
    "ping": "fetch",
    "websocket": "websocket",
}


@dataclass(slots=True)
class _Observed:
    """Requests to one origin that the browser reported."""

    origin: Origin
    requests: int = 0
    kinds: set[RequestKind] = field(default_factory=set[RequestKind])


class RequestWatch:
    """Watches the requests of one session."""

    def __init__(self, context: BrowserContext, boundary: AllowlistProxy) -> None:
        self._boundary = boundary
        self._before = {place: count.requests for place, count in boundary.tally.counts.items()}
        """Refusals in earlier sessions with the same proxy."""
        self._seen: dict[Place, _Observed] = {}
        self._reported: dict[Place, BlockedOrigin] = {}
        context.on("request", self._request)

    def web_socket(self, socket: WebSocket) -> None:
        """Handler of a page's `websocket` event."""
        self._note(socket.url, "websocket")

    def take(self) -> tuple[BlockedOrigin, ...]:
        """Returns the requests that were refused since the last call."""
        news = (self._news(place, count) for place, count in tuple(self._boundary.tally.counts.items()))
        return merge_blocked_origins(item for item in news if item is not None)

    def report_again(self) -> None:
        """Makes the next `take` report all refusals again, because nobody has stored the earlier reports."""
        self._reported.clear()

    def _request(self, request: Request) -> None:
        self._note(request.url, _kind(request))

    def _note(self, url: str, kind: RequestKind) -> None:
        origin, origins = origin_of(url), self._boundary.origins
        if origin is None or origins.allows_origin(origin) or origins.subresources(origin) != "no":
            return  # the proxy itself sees the kind of passive loads
        place = Place(origin.host, origin.port)
        if place not in self._seen and len(self._seen) >= _MAX_SEEN:
            return
        seen = self._seen.setdefault(place, _Observed(origin))
        seen.requests += 1
        seen.kinds.add(kind)

    def _news(self, place: Place, count: Count) -> BlockedOrigin | None:
        refused = count.requests - self._before.get(place, 0)
        if refused <= 0:
            return None
        seen, reported = self._seen.get(place), self._reported.get(place)
        if seen is None and count.origin in BROWSERS_OWN:
            return None
        kinds = sorted_kinds(seen.kinds if seen else count.kinds)
        name = seen.origin.rule if seen else count.origin
        total = BlockedOrigin(
            origin=name,
            requests=seen.requests if seen else refused,
            kinds=kinds,
            allow=name if count.allow == count.origin else count.allow,
        )
        known, kinds_known = (reported.requests, reported.kinds) if reported else (0, ())
        fresh = max(0, total.requests - known)
        if not fresh and set(kinds) <= set(kinds_known):
            return None
        self._reported[place] = total.model_copy(update={"requests": max(known, total.requests)})
        return total.model_copy(update={"requests": fresh})


def is_for_tab(request: Request) -> bool:
    """Whether the request loads the document of a tab, not of an iframe."""
    if not request.is_navigation_request():
        return False
    try:
        return request.frame.parent_frame is None
    except PlaywrightError:  # the requesting page is not loaded yet, e.g. a new window
        return True


def _kind(request: Request) -> RequestKind:
    if request.resource_type != "document":
        return _KINDS.get(request.resource_type, "other")
    return "document" if is_for_tab(request) else "frame"
