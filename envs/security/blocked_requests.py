"""Counts requests that the allowlist proxy refused, by origin, for traces, prompts and tables.

The page chooses the origin, so it is stored as data: the canonical host as the browser reads it (ASCII, no spaces, at
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
"""The purpose of a request. `document`: the page of a tab. `frame`: the page of an iframe, object or embed. `fetch`:
fetch, XMLHttpRequest, EventSource and beacons. `other`: reports, manifests and unnamed purposes."""

KINDS: Final[tuple[RequestKind, ...]] = get_args(RequestKind)
MAX_ORIGINS: Final = 32
"""Origins in one record. Requests to further origins are counted together under OTHERS."""
OTHERS: Final = "*"
UNREADABLE: Final = "?"
"""Stands for an origin that cannot be parsed, such as an address with a password."""


BROWSERS_OWN: Final = frozenset(("http://connectivitycheck.gstatic.com", "https://connectivitycheck.gstatic.com"))
"""Chromium requests these after a TLS error, to detect a captive portal. The proxy refuses them like other requests;
no page causes them."""


class BlockedOrigin(Record):
    """Refused requests to one origin."""

    origin: str
    """`https://cdn.example` or `http://127.0.0.1:8080`; OTHERS or UNREADABLE."""
    requests: int = Field(default=1, ge=0)
    """0 if the requests were counted before and only their kind is new."""
    kinds: tuple[RequestKind, ...] = ()
    """In the order of KINDS; empty if unknown."""
    allow: str = ""
    """The value of `--allow` that admits these requests; empty if there is none."""

    @model_validator(mode="before")
    @classmethod
    def _older(cls, value: object) -> object:
        """Reads older traces, which hold the origin alone."""
        return {"origin": value, "allow": value} if isinstance(value, str) else value


def sorted_kinds(kinds: Iterable[RequestKind]) -> tuple[RequestKind, ...]:
    """Unique kinds in the order of KINDS."""
    present = frozenset(kinds)
    return tuple(kind for kind in KINDS if kind in present)


def merge_blocked_origins(blocked: Iterable[BlockedOrigin]) -> tuple[BlockedOrigin, ...]:
    """Merges records to one per origin, in order of first appearance: at most MAX_ORIGINS and OTHERS."""
    merged: dict[str, BlockedOrigin] = {}
    for entry in blocked:
        name = entry.origin if entry.origin in merged or _has_room(merged) else OTHERS
        known = merged.get(name)
        merged[name] = entry.model_copy(
            update={
                "origin": name,
                "requests": entry.requests + (known.requests if known else 0),
                "kinds": sorted_kinds((*entry.kinds, *(known.kinds if known else ()))),
                "allow": "" if name == OTHERS else entry.allow or (known.allow if known else ""),
            }
        )
    return tuple(sorted(merged.values(), key=lambda entry: entry.origin == OTHERS))


def _has_room(merged: Mapping[str, object]) -> bool:
    return len(merged) - (OTHERS in merged) < MAX_ORIGINS


class Place(NamedTuple):
    """Host and port: all that a tunnel shows of its target."""

    host: str
    port: int


NOWHERE: Final = Place("", 0)
"""The place of an address that cannot be parsed."""
_ELSEWHERE: Final = Place(OTHERS, 0)
_MAX_PLACES: Final = 1_000
"""Bounds memory: a page can name any number of places."""


class Count:
    """Counts refused requests to one place."""

    def __init__(self, origin: str, allow: str) -> None:
        self.origin = origin
        self.allow = allow
        self.requests = 0
        self.kinds: set[RequestKind] = set()


class RefusalCounter:
    """Counts refused requests by place, in bounded memory."""

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
