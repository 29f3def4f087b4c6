"""`url_match`: the page that the agent stopped at ("GOLD in PRED").

Addresses are compared as what they are, not as strings: the same origin, the reference's path as a
prefix of whole path segments, every query parameter of the reference with its value. So `/f/books`
matches `/f/books/new` but not `/f/bookshelf`, and each alternative brings its own parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from envs.origins import Origin, origin_of
from envs.webarena.evaluators.finding import Finding, short
from envs.webarena.sites import Sites
from envs.webarena.task import UrlMatch


@dataclass(frozen=True, slots=True)
class ParsedUrl:
    """An address in the form in which two are compared."""

    origin: Origin | None
    path: tuple[str, ...]
    """Decoded segments, empty ones left out."""
    query: dict[str, list[str]]

    @classmethod
    def parse(cls, url: str) -> ParsedUrl:
        parts = urlsplit(url)
        segments = tuple(unquote(segment) for segment in parts.path.split("/") if segment)
        return cls(origin_of(url), segments, parse_qs(parts.query, keep_blank_values=True))

    def is_in(self, other: ParsedUrl) -> bool:
        """Is this, the reference, part of *other*, the page?"""
        if self.origin is None or self.origin != other.origin or other.path[: len(self.path)] != self.path:
            return False
        return all(set(values) <= set(other.query.get(name, ())) for name, values in self.query.items())


def url_match(check: UrlMatch, url: str, sites: Sites) -> Finding:
    """Raises BadInput where the reference names a site whose variable is not set."""
    page = ParsedUrl.parse(url)
    wanted = [sites.fill(reference.strip()) for reference in check.urls]
    if any(ParsedUrl.parse(reference).is_in(page) for reference in wanted):
        return Finding(True, f"the agent stopped at {short(url)}")
    return Finding(False, f"the agent stopped at {short(url)}, expected {short(' or '.join(wanted), 200)}")
