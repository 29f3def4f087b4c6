"""Reimplements `NetworkEventEvaluator` of webarena-verified 1.2.3."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding, short
from envs.suites.webarena.evaluators.original.kinds import Known, read_known
from envs.suites.webarena.evaluators.original.normal import is_pattern
from envs.suites.webarena.evaluators.original.places import derender_to, render_with
from envs.suites.webarena.evaluators.original.readers import Unreadable
from envs.suites.webarena.evaluators.original.structure import Part, read_object, same
from envs.suites.webarena.evaluators.original.urls import Address, Query, UrlReading, read_url, same_path, same_query
from envs.suites.webarena.json_text import load_json
from envs.suites.webarena.jsonpath import find
from envs.suites.webarena.request_log import SentRequest
from envs.suites.webarena.task import Json, RequestSent
from envs.suites.webarena.values import MAX_URL_CHARS

_ASSETS = (".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".woff", ".woff2", ".ttf", ".ico", ".webp")
_URL_HEADERS = ("redirect_url", "referer")


def request_sent(check: RequestSent, evidence: Evidence) -> Finding:
    """Checks the last request to the address (or any), or for a navigation task the last page, against all
    expectations."""
    target = short(f"{_method(check)} {' or '.join(check.urls)}", 160)
    try:
        picked = _picked(check, evidence)
        if check.forbidden:
            return Finding(not picked, f"{len(picked)} requests {target}, expected none")
        expected = _Expected(check, evidence)
        met = any(expected.agrees(sent) for sent in picked)
    except (Unreadable, re.error) as error:
        return Finding(False, f"request {target}: the original's evaluator fails: {short(str(error))}")
    return Finding(met, f"request {target} was {'made as expected' if met else 'not made as expected'}")


def _method(check: RequestSent) -> str:
    return check.method or "GET"


def _picked(check: RequestSent, evidence: Evidence) -> Sequence[SentRequest]:
    counted = [sent for sent in evidence.sent if len(sent.url) <= MAX_URL_CHARS]
    counted = [sent for sent in counted if not urlsplit(sent.url).path.endswith(_ASSETS)]
    if not counted:
        return ()
    if check.navigates and _method(check) == "GET":
        return [sent for sent in counted if _is_navigation(sent)][-1:]
    theirs, ours = _reading(check, evidence, strict=True), _reading(check, evidence, strict=False)
    targets = _addresses(check.urls, theirs)
    referer = check.headers.get("referer")
    referers = _addresses(_listed(referer), theirs) if referer else ()
    matches = [sent for sent in counted if sent.method.lower() == _method(check).lower()]
    matches = [sent for sent in matches if _matches_any(targets, read_url(sent.url, ours), theirs)]
    matches = [sent for sent in matches if _came_from(referers, sent, theirs, ours)]
    return matches[-1:] if check.last_only else matches


def _is_navigation(sent: SentRequest) -> bool:
    accept = sent.headers.get("accept")
    if sent.method != "GET" or accept is None:
        return sent.method == "GET" and sent.navigation
    if "sec-fetch-user" not in sent.headers:
        return accept.lower().startswith("text/html")
    metadata = tuple(sent.headers.get(f"sec-fetch-{name}", "").lower() for name in ("dest", "mode", "user"))
    return metadata == ("document", "navigate", "?1") and "text/html" in accept.lower()


def _came_from(referers: Sequence[Address], sent: SentRequest, theirs: UrlReading, ours: UrlReading) -> bool:
    referer = sent.headers.get("referer", "").lower()
    return not referers or not referer or _matches_any(referers, read_url(referer, ours), theirs)


def _matches_any(addresses: Sequence[Address], actual: Address, reading: UrlReading) -> bool:
    return any(same_path(address, actual, reading.render) for address in addresses)


def _reading(check: RequestSent, evidence: Evidence, *, strict: bool) -> UrlReading:
    derender = derender_to(evidence, strict=strict)

    def ignored(name: str) -> bool:
        return any(re.search(pattern, name, re.IGNORECASE) for pattern in check.ignored_query)

    def typed(query: Query) -> Query:
        if not check.query_shape.properties or not query:
            return query
        values = {name: list(values) for name, values in query.items()}
        read = read_object(values, check.query_shape, derender, strict=strict)
        return {name: tuple(_listed(value)) for name, value in read.items()}

    return UrlReading(derender, render_with(evidence), ignored, check.base64_query, typed)


def _addresses(
    urls: Sequence[str], reading: UrlReading, query: Mapping[str, tuple[str, ...]] | None = None
) -> tuple[Address, ...]:
    return tuple(read_url(url, reading, query) for url in urls)


def _listed(value: Json) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


class _Expected:
    """The expectations of one request, read once. Raises Unreadable if the reference cannot be read."""

    def __init__(self, check: RequestSent, evidence: Evidence) -> None:
        self._check = check
        self._theirs, self._ours = (_reading(check, evidence, strict=strict) for strict in (True, False))
        self._render = self._theirs.render
        self._urls = _addresses(check.urls, self._theirs, dict(check.query) or None)
        self._loose = derender_to(evidence)
        self._headers = {
            name: self._header(name, value, self._theirs, strict=True) for name, value in check.headers.items()
        }
        derender = derender_to(evidence, strict=True)
        self._data = read_object(check.post_data, check.post_shape, derender, strict=True) if check.post_data else None
        self._cookies = {name: read_known(value, "string", str) for name, value in check.cookies.items()}

    def agrees(self, sent: SentRequest) -> bool:
        check = self._check
        if sent.method != _method(check) or sent.status != check.status or not self._same_url(sent.url):
            return False
        return (
            self._same_headers(sent)
            and (self._data is None or same(self._data, self._data_of(sent), more=True))
            and (not check.content or _same_content(check.content, sent.content))
            and self._same_cookies(sent.cookies)
        )

    def _same_url(self, url: str) -> bool:
        actual = read_url(url, self._ours)
        return any(self._is(expected, actual) for expected in self._urls)

    def _is(self, expected: Address, actual: Address) -> bool:
        return same_path(expected, actual, self._render) and same_query(expected.query, actual.query, _same_parameter)

    def _same_headers(self, sent: SentRequest) -> bool:
        for name, expected in self._headers.items():
            actual = sent.headers.get(name.lower())
            if actual is None or not self._same_header(expected, self._header(name, actual, self._ours, strict=False)):
                return False
        return True

    def _same_header(self, expected: Part, actual: Part) -> bool:
        if isinstance(expected, tuple):
            return isinstance(actual, tuple) and any(self._is(address, actual[0]) for address in expected)
        return same(expected, actual)

    def _header(self, name: str, value: Json, reading: UrlReading, *, strict: bool) -> Part:
        """A tuple of addresses, or a text."""
        if name in _URL_HEADERS and value:
            return _addresses(_listed(value), reading)
        if isinstance(value, list | tuple):
            return read_known([self._loose(str(item)) for item in value], "string", str)
        return read_known(self._loose(str(value)), "string", str)

    def _data_of(self, sent: SentRequest) -> Part:
        if not sent.post_data:
            return None
        values = {key.strip(): _extracted(sent.post_data, key.strip()) for key in self._check.post_data}
        return read_object(values, self._check.post_shape, self._loose, strict=False)

    def _same_cookies(self, cookies: Mapping[str, str]) -> bool:
        return all(
            name in cookies and same(expected, read_known(cookies[name], "string", str))
            for name, expected in self._cookies.items()
        )


def _same_parameter(expected: Any, actual: Any) -> bool:
    if isinstance(expected, Known):
        return same(expected, actual)
    return not isinstance(actual, Known) and bool(expected == actual)


def _same_content(expected: Mapping[str, Json], content: Json) -> bool:
    """Compares raw values, which differ by letter case and by type (a number is no text)."""
    if not isinstance(content, dict) or not content:
        return False
    actual: dict[str, Json] = {}
    for name in map(str.strip, expected):
        if _is_path(name) or name in content:
            actual[name] = _extracted(content, name)
    return same(expected, actual, more=True)


def _is_path(key: str) -> bool:
    return key.startswith("$") or is_pattern(key)


def _extracted(data: Mapping[str, Json], key: str) -> Json:
    """The value for *key*: a name, a path, or a pattern of names."""
    if not _is_path(key):
        return data.get(key)
    pattern = key[2:] if key.startswith("$.^") else key
    if is_pattern(pattern):
        fitting = [value for name, value in data.items() if re.match(pattern, name)]
        return fitting[0] if len(fitting) == 1 else fitting or None
    return find(data, key) if _exists(data, key) else find(_deserialized(data), key)


def _exists(data: Mapping[str, Json], key: str) -> bool:
    return find(data, key) is not None


def _deserialized(data: Json) -> Json:
    """*data* with JSON in texts parsed, one level deep."""
    if isinstance(data, Mapping):
        return {
            name: _loaded(value) if isinstance(value, str) else _deserialized(value) for name, value in data.items()
        }
    return [_deserialized(item) for item in data] if isinstance(data, list) else data


def _loaded(text: str) -> Json:
    try:
        return load_json(text)
    except ValueError:
        return text
