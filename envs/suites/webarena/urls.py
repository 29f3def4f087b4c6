"""Compares addresses by their parts, not as strings."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, unquote, urlsplit

from envs.security.allowlist import Origin, origin_of

_BASE64 = re.compile(r"[A-Za-z0-9_-]{4,}={0,2}")


@dataclass(frozen=True, slots=True)
class ParsedUrl:
    """An address in a form for comparison."""

    origin: Origin | None
    path: tuple[str, ...]
    """Decoded segments without empty ones."""
    query: dict[str, list[str]]

    @classmethod
    def parse(cls, url: str) -> ParsedUrl:
        parts = urlsplit(url)
        segments = tuple(unquote(segment) for segment in parts.path.split("/") if segment)
        return cls(origin_of(url), segments, parse_qs(parts.query, keep_blank_values=True))

    def is_in(self, other: ParsedUrl) -> bool:
        """True if this reference is contained in the address *other* of a page."""
        if self.origin is None or self.origin != other.origin or other.path[: len(self.path)] != self.path:
            return False
        return all(set(values) <= set(other.query.get(name, ())) for name, values in self.query.items())

    def is_same_page(self, other: ParsedUrl) -> bool:
        """True if origin and path are equal, ignoring letter case and queries."""
        ours, theirs = ([segment.casefold() for segment in url.path] for url in (self, other))
        return self.origin is not None and self.origin == other.origin and ours == theirs

    def unpacked(self) -> ParsedUrl:
        """This address with base64-encoded queries in path segments moved to the query."""
        path: list[str] = []
        query = dict(self.query)
        for segment in self.path:
            hidden = _hidden_query(segment)
            if hidden:
                query.update(hidden)
            else:
                path.append(segment)
        return replace(self, path=tuple(path), query=query)

    def __str__(self) -> str:
        """The address without the query."""
        return f"{self.origin}/{'/'.join(self.path)}" if self.origin else ""


def _hidden_query(segment: str) -> dict[str, list[str]]:
    """The query that *segment* encodes; empty if there is none."""
    if not _BASE64.fullmatch(segment):
        return {}
    try:
        text = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return {}
    return parse_qs(unquote(text).strip().lstrip("?&"), keep_blank_values=True) if "=" in text else {}
