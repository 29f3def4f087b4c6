"""`NetworkEventEvaluator` of WebArena-Verified: a request that the session must (or must not) have made.

It first selects the requests to the address, by method, path and the referring page's path. The last of
them (or any) must match all expectations. A page cannot forge this evidence: it is what the browser sent
and the server answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from envs.security.allowlist import origin_of
from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding, short
from envs.suites.webarena.jsonpath import find, is_path
from envs.suites.webarena.request_log import SentRequest
from envs.suites.webarena.sites import Sites
from envs.suites.webarena.task import Json, RequestSent, Shape
from envs.suites.webarena.urls import ParsedUrl
from envs.suites.webarena.values import MAX_URL_CHARS, matches, matches_pattern

REFERER = "referer"
MAX_REFUSED = 5
"""Refused origins listed in a finding."""

_VARIABLE = re.compile(r"\\?\{\\?\{\w+\\?\}\\?\}")
"""Matches `{{post_id}}`, escaped or not: a number that is known only after the agent has created the post."""


def request_sent(check: RequestSent, evidence: Evidence) -> Finding:
    """Checks the requests. Raises BadInput if the variable of a site in an address is not set."""
    target = short(f"{check.method or 'any'} {' or '.join(check.urls)}", 160)
    picked = [sent for sent in evidence.sent if _is_to(check, sent, evidence.sites)]
    if check.forbidden:
        return Finding(not picked, f"{len(picked)} requests {target}, expected none")
    if check.last_page:
        opened = [sent for sent in evidence.sent if sent.navigation and sent.method == "GET"]
        picked = [sent for sent in opened[-1:] if sent in picked]
    elif check.last_only:
        picked = picked[-1:]
    if not picked:
        return Finding(False, f"no request {target}{_refused(evidence)}")
    differences = [_difference(check, sent, evidence.sites) for sent in picked]
    if "" in differences:
        return Finding(True, f"request {target} was made as expected")
    return Finding(False, f"request {target}: {differences[-1]}{_refused(evidence)}")


def _refused(evidence: Evidence) -> str:
    """Lists refused origins and the options that allow them, because the map's routes may need them."""
    refused = [origin_of(sent.url) for sent in evidence.sent if not evidence.origins.allows(sent.url)]
    rules = list(dict.fromkeys(origin.rule for origin in refused if origin is not None))[:MAX_REFUSED]
    return f"; not allowed: {', '.join(f'{rule} (--allow {rule})' for rule in rules)}" if rules else ""


def _is_to(check: RequestSent, sent: SentRequest, sites: Sites) -> bool:
    if check.method is not None and sent.method.upper() != check.method:
        return False
    if not any(_same_page(url, sent.url, sites, unpack=check.base64_query) for url in check.urls):
        return False
    came_from, expected = sent.headers.get(REFERER), _listed(_header(check, REFERER))
    return not came_from or not expected or any(_same_page(url, came_from, sites) for url in expected)


def _difference(check: RequestSent, sent: SentRequest, sites: Sites) -> str:
    """The first difference between *sent* and the expectation; empty if there is none."""
    if sent.status != check.status:
        return f"it was answered {sent.status}, expected {check.status}"
    if not any(_same_query(url, check, sent.url, sites) for url in check.urls):
        return f"its query differs: {short(sent.url)}"
    for name, expected in check.headers.items():
        got = sent.headers.get(name.lower())
        if not _same_header(name, expected, got, check, sites):
            return f"its header {name} is {short(got or '')}"
    for part, values, got in (
        ("data", check.post_data, sent.post_data),
        ("answer", check.content, sent.content),
        ("cookies", check.cookies, sent.cookies),
    ):
        shapes = check.post_shape.properties if part == "data" else {}
        difference = _first_difference(values, got, shapes, sites)
        if difference is not None:
            return f"its {part} differ in {difference}"
    return ""


def _first_difference(values: Mapping[str, Json], got: Json, shapes: Mapping[str, Shape], sites: Sites) -> str | None:
    for key, expected in values.items():
        actual = _value(got, key.strip())
        if not matches(expected, actual, shapes.get(key, Shape()), sites):
            return f"{key}: {short(str(actual))}, expected {short(str(expected))}"
    return None


def _value(got: Json, key: str) -> Json:
    """The value for *key*: a name, a path, or a pattern that one name matches (`$.^reply_.*$`)."""
    if not isinstance(got, dict):
        return None
    pattern = key.removeprefix("$.")
    if not pattern.startswith("^") and _VARIABLE.search(key):
        pattern = f"^{_with_numbers(re.escape(key))}$"
    if pattern.startswith("^"):
        fitting = [value for name, value in got.items() if re.match(pattern, name)]
        return fitting[0] if len(fitting) == 1 else fitting or None
    return find(got, key) if is_path(key) else got.get(key)


def _with_numbers(pattern: str) -> str:
    return _VARIABLE.sub(lambda _: r"\d+", pattern)


def _same_page(expected: str, actual: str, sites: Sites, *, unpack: bool = False) -> bool:
    """Compares origin and path; *expected* may be a pattern. *unpack*: a path segment may encode a query."""
    if len(actual) > MAX_URL_CHARS:
        return False
    page = ParsedUrl.parse(actual)
    forms = (page, page.unpacked()) if unpack else (page,)
    if expected.startswith("^"):
        return any(matches_pattern(_with_numbers(expected), str(form), sites, heed_case=True) for form in forms)
    if _VARIABLE.search(expected):
        pattern = _with_numbers(re.escape(expected.partition("?")[0].rstrip("/")))
        return any(matches_pattern(f"^{pattern}$", str(form), sites, heed_case=True) for form in forms)
    return any(ParsedUrl.parse(sites.fill(expected)).is_same_page(form) for form in forms)


def _same_query(expected: str, check: RequestSent, actual: str, sites: Sites) -> bool:
    """True if every parameter that is not ignored is equal; a missing parameter counts as empty."""
    query: Mapping[str, Sequence[str]] = check.query
    if not query and not expected.startswith("^"):
        query = ParsedUrl.parse(sites.fill(expected)).query
    page = ParsedUrl.parse(actual)
    got = (page.unpacked() if check.base64_query else page).query
    names = {*query, *got}
    counted = (name for name in names if not any(re.search(pattern, name) for pattern in check.ignored_query))
    return all(
        _same_values(query.get(name) or ("",), got.get(name) or ("",), _item_shape(check, name), sites)
        for name in counted
    )


def _same_values(expected: Sequence[str], got: Sequence[str], shape: Shape | None, sites: Sites) -> bool:
    def agree(want: str, have: str) -> bool:
        if want.startswith("^"):
            return matches_pattern(want, have, sites)
        same = want.strip().casefold() == have.strip().casefold()
        return same if shape is None else matches(want, have, shape, sites)

    met = all(any(agree(want, have) for have in got) for want in expected)
    return met and all(any(agree(want, have) for want in expected) for have in got)


def _item_shape(check: RequestSent, name: str) -> Shape | None:
    shape = check.query_shape.properties.get(name)
    return shape.items or shape if shape else None


def _same_header(name: str, expected: Json, got: str | None, check: RequestSent, sites: Sites) -> bool:
    if name.lower() != REFERER:
        return matches(expected, got, Shape(), sites)
    bare = check.model_copy(update={"query": {}})
    return got is not None and any(
        _same_page(url, got, sites) and _same_query(url, bare, got, sites) for url in _listed(expected)
    )


def _header(check: RequestSent, name: str) -> Json:
    return next((value for known, value in check.headers.items() if known.lower() == name), None)


def _listed(value: Json) -> list[str]:
    return [] if value is None else [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]
