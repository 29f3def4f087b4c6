"""Which requests pages send by themselves, so that a poll or a page's own statistics do not ask a person at every step.

Background is what a page has sent while the task's start was opened, before any action: the same method, address and
body, to the letter, but for points in time near the present. A request that differs in anything else is none: one
address (`/graphql`) may serve a poll and an order.
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
from envs.security.outgoing_requests import Outgoing

MAX_LEARNED: Final = 500
NEAR_S: Final = 86_400.0
"""A number or date that is no further than this from now is a point in time."""
_UPWARD: Final = re.compile(r"\.\.|;|\\|%(?:2e|2f|5c|3b|25)", re.IGNORECASE)
_TIME: Final = re.compile(
    rb"(?<![0-9.])(?:[0-9]{10}(?:\.[0-9]{1,9})?|[0-9]{13}(?:\.[0-9]{1,6})?)(?![0-9.])"
    rb"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}(?::|%3A|%3a)[0-9]{2}(?::|%3A|%3a)[0-9]{2}(?:\.[0-9]{1,6})?"
    rb"(?:Z|[+-][0-9]{2}:[0-9]{2})"
)


class Background:
    """What is known of one session's pages."""

    def __init__(self, named: Sequence[str] = ()) -> None:
        """*named*: addresses of the user's, see `SessionSettings.background`. Raises BadInput."""
        self.learning = True
        """Whether no action has been done yet."""
        self._named = tuple(_address(one) for one in named)
        self._learned: set[bytes] = set()

    def see(self, sent: Outgoing) -> None:
        """A request that passed; learned where no action has been done yet."""
        if self.learning and sent.is_whole and len(self._learned) < MAX_LEARNED:
            self._learned.add(_likeness(sent))

    def covers(self, sent: Outgoing) -> bool:
        """Whether *sent* is background."""
        path = sent.url.partition("?")[0]
        if any(_begins(path, start) if is_open else path == start for start, is_open in self._named):
            return True
        return sent.is_whole and bool(self._learned) and _likeness(sent) in self._learned


def _begins(path: str, start: str) -> bool:
    """Not where a server could read the rest as a way up again, which a browser leaves as it is."""
    return path.startswith(start) and not _UPWARD.search(path, len(start))


def _address(named: str) -> tuple[str, bool]:
    """An address without its query, and whether it only begins so."""
    is_open = named.endswith("*")
    plain = named.removesuffix("*").partition("?")[0].partition("#")[0]
    origin, rest = origin_of(plain), re.fullmatch(r"https?://[^/]+(/.*)", plain)
    if origin is None or rest is None or origin.scheme not in ("http", "https"):
        raise BadInput(f"session.background: {named!r} is no address such as https://shop.example/collect")
    return f"{origin}{rest[1]}", is_open


def _likeness(sent: Outgoing) -> bytes:
    """Equal for requests that differ in points in time alone."""
    parts = (sent.method.encode(), sent.url.encode(), sent.body)
    return hashlib.sha256(b"\0".join(_TIME.sub(_timeless, part) for part in parts)).digest()


def _timeless(match: re.Match[bytes]) -> bytes:
    text = match.group().decode()
    try:
        if "T" in text:
            when = datetime.fromisoformat(unquote(text).replace("Z", "+00:00")).timestamp()
        else:
            when = float(text) / (1000 if len(text.partition(".")[0]) == 13 else 1)
    except ValueError:
        return match.group()
    return b"\0time" if abs(when - time.time()) < NEAR_S else match.group()
