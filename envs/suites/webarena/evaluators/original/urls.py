"""Reads and compares addresses as WebArena-Verified does."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlparse, urlsplit, urlunparse, urlunsplit

from envs.suites.webarena.evaluators.original.normal import Derender, is_pattern
from envs.suites.webarena.evaluators.original.readers import Unreadable
from envs.suites.webarena.task import Json

_BASE64 = re.compile(r"[A-Za-z0-9_-]{4,}={0,2}")
_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}

Query = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Address:
    """Scheme, host and path (or a placeholder and a path), and the query; a pattern is unchanged."""

    base: str
    query: Query = field(default_factory=dict[str, tuple[Any, ...]])
    pattern: bool = False


@dataclass(frozen=True, slots=True)
class UrlReading:
    """How a check reads the addresses that it compares."""

    derender: Derender
    render: Callable[[str], str] = str
    """Replaces the placeholder at the beginning of a text by its address."""
    ignored: Callable[[str], bool] = lambda _: False
    """True for the names of ignored parameters."""
    base64: bool = False
    """True: a segment of the path may encode a query."""
    typed: Callable[[Query], Query] = lambda query: query
    """Reads the values of parameters that have a type."""


def read_address(value: Json, derender: Derender) -> Address:
    """Reads an address in an answer. Raises Unreadable."""
    return read_url(value, UrlReading(derender))


def read_url(value: Json, reading: UrlReading, query: Mapping[str, tuple[str, ...]] | None = None) -> Address:
    """Reads an address; *query* replaces its query. Raises Unreadable."""
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        raise Unreadable("no address")
    if is_pattern(text):
        return Address(text.rstrip("/"), _query(query or {}, reading), pattern=True)
    text = text.rstrip("/")
    text = reading.render(text) if text.startswith("__") else text
    if text.lower().startswith("ssh://") or (text.lower().startswith("git@") and ":" in text and "://" not in text):
        return Address(_clone(text))
    parsed = urlparse(reading.derender(_canonical(text)))
    path = f"{parsed.path};{parsed.params}" if parsed.params else parsed.path
    hidden: list[str] = []
    if query is None and reading.base64:
        path, hidden = _unpacked(path)
    if query is None:
        query = _parsed("&".join([*hidden, *([parsed.query.strip()] if parsed.query else [])]))
    base = urlunparse((parsed.scheme.lower(), parsed.netloc.lower(), path, "", "", parsed.fragment))
    return Address(base, _query(query, reading))


def _query(query: Mapping[str, tuple[str, ...]], reading: UrlReading) -> Query:
    kept = {name: values for name, values in query.items() if not reading.ignored(name)}
    lower = {name: tuple(sorted(value.lower().strip() for value in values)) for name, values in kept.items()}
    return reading.typed(lower)


def _parsed(text: str) -> dict[str, tuple[str, ...]]:
    query = parse_qs(text, keep_blank_values=True)
    return {unquote(name): tuple(sorted(map(unquote, values))) for name, values in query.items()}


def _clone(text: str) -> str:
    """A repository's SSH address in its short form, with a placeholder for its host."""
    if text.lower().startswith("ssh://"):
        parsed = urlparse(text)
        user = parsed.netloc.split("@")[0] if "@" in parsed.netloc else "git"
        path = parsed.path
    else:
        user, _, rest = text.partition("@")
        path = rest.partition(":")[2]
    return f"{user.lower()}@__SSH_HOST__:{path.lstrip('/').lower()}"


def _canonical(text: str) -> str:
    """Normalises an address: lower-case scheme and host, no default port, uniform escapes, no empty segments."""
    if ":" not in text[:7] and not (text.startswith("/") and not text.startswith("//")):
        text = f"https://{text.lstrip('/')}"
    try:
        parts = urlsplit(text.replace("#!", "?_escaped_fragment_=").rstrip("&? ").strip())
    except ValueError as error:
        raise Unreadable(text) from error
    scheme = parts.scheme.lower()
    user, _, place = parts.netloc.rpartition("@")
    host, colon, port = place.partition(":")
    port = str(int(port)) if port.isdigit() else port
    colon, port = ("", "") if _PORTS.get(scheme) == port or not port else (colon, port)
    place = f"{user}@{host}" if user else host
    path = _escaped(parts.path, "~:/#[]@!$&'()*+,;=")
    path = _segments(path) if scheme in ("", "http", "https") else path
    pairs = [pair.partition("=") for pair in parts.query.split("&") if pair]
    safe = "~:/?[]@!$'()*+,;"
    query = "&".join(
        f"{_escaped(name, safe)}={_escaped(value, safe)}" if value else _escaped(name, safe) for name, _, value in pairs
    )
    return urlunsplit((scheme, place.lower().strip(".") + colon + port, path, query, _escaped(parts.fragment, "~=")))


def _escaped(text: str, safe: str) -> str:
    return quote(unicodedata.normalize("NFC", unquote(text)), safe)


def _segments(path: str) -> str:
    out: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            del out[1:][-1:]
            out = out[:-1] if len(out) > 1 else out
        elif segment != "." and (segment or not out):
            out.append(segment)
    if segments[-1] in ("", ".", ".."):
        out.append("")
    return "/".join(out) or "/"


def _unpacked(path: str) -> tuple[str, list[str]]:
    """*path* without the segments that encode a query, and those queries."""
    kept: list[str] = []
    queries: list[str] = []
    for segment in path.split("/"):
        hidden = _hidden(segment)
        if hidden:
            queries.append(hidden)
        elif segment:
            kept.append(segment)
    joined = "/".join(kept)
    if not joined:
        return "/" if path.startswith("/") else "", queries
    return ("/" if path.startswith("/") else "") + joined + ("/" if path.endswith("/") else ""), queries


def _hidden(segment: str) -> str:
    if not _BASE64.fullmatch(segment):
        return ""
    try:
        text = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return unquote(text).strip().lstrip("?&") if "=" in text else ""


def same_path(expected: Address, actual: Address, render: Callable[[str], str]) -> bool:
    """Compares paths. A pattern must match the complete address, case-sensitively. Otherwise case and a trailing slash
    are ignored."""
    if expected.pattern:
        inside = expected.base[1:-1] if is_pattern(expected.base) else expected.base
        inside = render(inside) if inside.startswith("__") else inside
        shown = render(actual.base) if actual.base.startswith("__") else actual.base
        return re.match(f"^{inside}$", shown) is not None
    return expected.base.lower().rstrip("/") == actual.base.lower().rstrip("/")


def same_query(expected: Query, actual: Query, same: Callable[[Any, Any], bool]) -> bool:
    """Compares queries: of a repeated parameter the first value in order; a missing parameter counts as empty."""
    for name in {*expected, *actual}:
        want, got = (query[name][0] if query.get(name) else "" for query in (expected, actual))
        if is_pattern(want):
            if re.match(want, str(got)) is None:
                return False
        elif not same(want, got):
            return False
    return True


@dataclass(frozen=True, slots=True)
class SameAddress:
    """Compares addresses with an expected one."""

    expected: Address
    render: Callable[[str], str] = str

    def includes(self, actual: Address) -> bool:
        return same_path(self.expected, actual, self.render) and same_query(
            self.expected.query, actual.query, lambda want, got: want == got
        )
