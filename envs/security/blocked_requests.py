"""Requests that the boundary refused, counted by origin: what a trace, a prompt and a table say of them.

An origin is chosen by the page, so it is kept as data: the canonical host as the browser reads it (ASCII, no spaces, at
most 253 characters), and at most MAX_ORIGINS of them in one record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, get_args

from pydantic import Field, model_validator

from envs.core.record import Record

RequestKind = Literal[
    "document", "frame", "script", "stylesheet", "image", "font", "media", "fetch", "websocket", "other"
]
"""What a request was for. `document`: the page of a tab. `frame`: the page of an iframe, object or embed. `fetch`:
fetch, XMLHttpRequest, EventSource and beacons. `other`: reports, manifests and what the browser does not name."""

KINDS: Final[tuple[RequestKind, ...]] = get_args(RequestKind)
MAX_ORIGINS: Final = 32
"""Origins in one record; the requests to all further ones are counted together, under OTHERS."""
OTHERS: Final = "*"
UNREADABLE: Final = "?"
"""In place of an origin that cannot be read, such as an address with a password."""


BROWSERS_OWN: Final = frozenset(("http://connectivitycheck.gstatic.com", "https://connectivitycheck.gstatic.com"))
"""Chromium asks there by itself, after a TLS error, whether it is behind a login page of the network. It is refused
like everything else, and no page's doing."""


class BlockedOrigin(Record):
    """Requests to one origin that were refused."""

    origin: str
    """`https://cdn.example` or `http://127.0.0.1:8080`; OTHERS or UNREADABLE."""
    requests: int = Field(default=1, ge=0)
    """0 where the requests were counted before and only their kind is new."""
    kinds: tuple[RequestKind, ...] = ()
    """In the order of KINDS; empty where nobody knows."""
    allow: str = ""
    """The value of `--allow` that admits these requests; empty where none does."""

    @model_validator(mode="before")
    @classmethod
    def _older(cls, value: object) -> object:
        """Traces used to hold the origin alone."""
        return {"origin": value, "allow": value} if isinstance(value, str) else value


def in_order(kinds: Iterable[RequestKind]) -> tuple[RequestKind, ...]:
    """Each kind once, in the order of KINDS."""
    given = frozenset(kinds)
    return tuple(kind for kind in KINDS if kind in given)


def summed(blocked: Iterable[BlockedOrigin]) -> tuple[BlockedOrigin, ...]:
    """One entry an origin, in the order of their first appearance, at most MAX_ORIGINS and OTHERS."""
    found: dict[str, BlockedOrigin] = {}
    for one in blocked:
        name = one.origin if one.origin in found or _has_room(found) else OTHERS
        known = found.get(name)
        found[name] = one.model_copy(
            update={
                "origin": name,
                "requests": one.requests + (known.requests if known else 0),
                "kinds": in_order((*one.kinds, *(known.kinds if known else ()))),
                "allow": "" if name == OTHERS else one.allow or (known.allow if known else ""),
            }
        )
    return tuple(sorted(found.values(), key=lambda one: one.origin == OTHERS))


def _has_room(found: Mapping[str, object]) -> bool:
    return len(found) - (OTHERS in found) < MAX_ORIGINS


class Place(NamedTuple):
    """Host and port: what a tunnel tells of where it goes."""

    host: str
    port: int


NOWHERE: Final = Place("", 0)
"""Of an address that cannot be read."""
_ELSEWHERE: Final = Place(OTHERS, 0)
_MAX_PLACES: Final = 1_000
"""A page can name places without end."""


class Count:
    """Refused requests to one place."""

    def __init__(self, origin: str, allow: str) -> None:
        self.origin = origin
        self.allow = allow
        self.requests = 0
        self.kinds: set[RequestKind] = set()


class Tally:
    """Refused requests by place, in bounded memory."""

    def __init__(self) -> None:
        self.counts: dict[Place, Count] = {}

    def add(self, place: Place, origin: str, allow: str, kind: RequestKind | None) -> None:
        if place not in self.counts and len(self.counts) >= _MAX_PLACES:
            place, origin, allow = _ELSEWHERE, OTHERS, ""
        count = self.counts.setdefault(place, Count(origin, allow))
        count.requests += 1
        count.allow = allow
        if kind is not None:
            count.kinds.add(kind)
