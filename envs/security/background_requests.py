"""Recognises background requests of pages (polls, statistics), so that they do not need approval at every step.

Background is what a page sent while the start of the task was opened, before any action: the same method (also by the
headers that override it), address, body and categories, exactly, except for timestamps near the present. A request that
differs in one of these is no background: one address (`/graphql`) can serve a poll and an order.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from urllib.parse import unquote

from envs.core.errors import BadInput
from envs.security.allowlist import origin_of
from envs.security.held_requests import categories_of, method_overrides
from envs.security.outgoing_requests import Outgoing

MAX_LEARNED: Final = 500
NEAR_S: Final = 86_400.0
"""A number or date at most this far from now counts as a timestamp."""
_UPWARD: Final = re.compile(r"\.\.|;|\\|%(?:2e|2f|5c|3b|25)", re.IGNORECASE)
_TIME: Final = re.compile(
    rb"(?<![0-9.])(?:[0-9]{10}(?:\.[0-9]{1,9})?|[0-9]{13}(?:\.[0-9]{1,6})?)(?![0-9.])"
    rb"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}(?::|%3A|%3a)[0-9]{2}(?::|%3A|%3a)[0-9]{2}(?:\.[0-9]{1,6})?"
    rb"(?:Z|[+-][0-9]{2}:[0-9]{2})"
)


class Background:
    """The background requests of one session."""

    def __init__(self, named: Sequence[str] = ()) -> None:
        """*named*: addresses from the user's settings, see `SessionSettings.background`. Raises BadInput."""
        self.learning = True
        """True until the first action."""
        self._named = tuple(_address(url) for url in named)
        self._learned: set[bytes] = set()

    def see(self, sent: Outgoing) -> None:
        """Records a request that passed. It becomes background if there was no action yet."""
        if self.learning and sent.is_whole and len(self._learned) < MAX_LEARNED:
            self._learned.add(_fingerprint(sent))

    def covers(self, sent: Outgoing) -> bool:
        """True if *sent* is a background request."""
        path = sent.url.partition("?")[0]
        if any(_begins(path, start) if is_open else path == start for start, is_open in self._named):
            return True
        return sent.is_whole and bool(self._learned) and _fingerprint(sent) in self._learned


def _begins(path: str, start: str) -> bool:
    """Prefix match. False if the rest could lead to a parent folder on the server: a browser sends it unchanged."""
    return path.startswith(start) and not _UPWARD.search(path, len(start))


def _address(named: str) -> tuple[str, bool]:
    """An address without its query, and whether it is a prefix (`*` at its end)."""
    is_open = named.endswith("*")
    plain = named.removesuffix("*").partition("?")[0].partition("#")[0]
    origin, rest = origin_of(plain), re.fullmatch(r"https?://[^/]+(/.*)", plain)
    if origin is None or rest is None or origin.scheme not in ("http", "https"):
        raise BadInput(f"session.background: {named!r} is not an address such as https://shop.example/collect")
    return f"{origin}{rest[1]}", is_open


def _fingerprint(sent: Outgoing) -> bytes:
    """A hash that is equal for requests that differ in timestamps only, and in headers that do not change their method
    or category."""
    overrides = b"\n".join(b"%s: %s" % field for field in method_overrides(sent))
    categories = ",".join(sorted(categories_of(sent)))
    parts = (sent.method.encode(), overrides, categories.encode(), sent.url.encode(), sent.body)
    return hashlib.sha256(b"\0".join(_TIME.sub(_without_time, part) for part in parts)).digest()


def _without_time(match: re.Match[bytes]) -> bytes:
    text = match.group().decode()
    try:
        if "T" in text:
            when = datetime.fromisoformat(unquote(text).replace("Z", "+00:00")).timestamp()
        else:
            when = float(text) / (1000 if len(text.partition(".")[0]) == 13 else 1)
    except ValueError:
        return match.group()
    return b"\0time" if abs(when - time.time()) < NEAR_S else match.group()
