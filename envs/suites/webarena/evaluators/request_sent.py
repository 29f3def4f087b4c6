"""`NetworkEventEvaluator` of WebArena-Verified: a request that the session must (or must not) have made.

First the requests to the address are picked, by method, path and the path of the page they came from;
then the last of them (or any) must agree in everything that is expected. A page that forges what it
shows cannot forge this: it is what the browser sent, and what the server answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from envs.security.allowlist import origin_of
from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding, short
from envs.suites.webarena.jsonpath import find, is_path
from envs.suites.webarena.sent import Sent
from envs.suites.webarena.sites import Sites
from envs.suites.webarena.task import Json, RequestSent, Shape
from envs.suites.webarena.urls import ParsedUrl
from envs.suites.webarena.values import MAX_URL_CHARS, matches, matches_pattern

REFERER = "referer"
MAX_REFUSED = 5
"""So many origins are named in a finding."""

_VARIABLE = re.compile(r"\\?\{\\?\{\w+\\?\}\\?\}")
"""`{{post_id}}`, escaped or not: a number that is known only once the agent has made the post."""


def request_sent(check: RequestSent, evidence: Evidence) -> Finding:
    """Raises BadInput where an address names a site whose variable is not set."""
    wanted = short(f"{check.method or 'any'} {' or '.join(check.urls)}", 160)
    picked = [sent for sent in evidence.sent if _is_to(check, sent, evidence.sites)]
    if check.forbidden:
        return Finding(not picked, f"{len(picked)} requests {wanted}, expected none")
    if check.last_page:
        opened = [sent for sent in evidence.sent if sent.navigation and sent.method == "GET"]
        picked = [sent for sent in opened[-1:] if sent in picked]
    elif check.last_only:
        picked = picked[-1:]
    if not picked:
        return Finding(False, f"no request {wanted}{_refused(evidence)}")
    differences = [_difference(check, sent, evidence.sites) for sent in picked]
    if "" in differences:
        return Finding(True, f"request {wanted} was made as expected")
    return Finding(False, f"request {wanted}: {differences[-1]}{_refused(evidence)}")


def _refused(evidence: Evidence) -> str:
    """Which origins the session asked that it may not reach, and how to allow them: the map's routes may be there."""
    asked = [origin_of(sent.url) for sent in evidence.sent if not evidence.origins.allows(sent.url)]
    origins = list(dict.fromkeys(origin.rule for origin in asked if origin is not None))[:MAX_REFUSED]
    return f"; not allowed: {', '.join(f'{one} (--allow {one})' for one in origins)}" if origins else ""


def _is_to(check: RequestSent, sent: Sent, sites: Sites) -> bool:
    if check.method is not None and sent.method.upper() != check.method:
        return False
    if not any(_same_page(url, sent.url, sites, unpack=check.base64_query) for url in check.urls):
        return False
    came_from, expected = sent.headers.get(REFERER), _listed(_header(check, REFERER))
    return not came_from or not expected or any(_same_page(url, came_from, sites) for url in expected)


def _difference(check: RequestSent, sent: Sent, sites: Sites) -> str:
    """What of *sent* is not as expected; empty where all is."""
    if sent.status != check.status:
        return f"it was answered {sent.status}, expected {check.status}"
    if not any(_same_query(url, check, sent.url, sites) for url in check.urls):
        return f"its query is another: {short(sent.url)}"
    for name, expected in check.headers.items():
        got = sent.headers.get(name.lower())
        if not _same_header(name, expected, got, check, sites):
            return f"its header {name} is {short(got or '')}"
    for what, wanted, got in (
        ("data", check.post_data, sent.post_data),
        ("answer", check.content, sent.content),
        ("cookies", check.cookies, sent.cookies),
    ):
        shapes = check.post_shape.properties if what == "data" else {}
        wrong = _first_difference(wanted, got, shapes, sites)
        if wrong is not None:
            return f"its {what} differ in {wrong}"
    return ""


def _first_difference(wanted: Mapping[str, Json], got: Json, shapes: Mapping[str, Shape], sites: Sites) -> str | None:
    for key, expected in wanted.items():
        actual = _value(got, key.strip())
        if not matches(expected, actual, shapes.get(key, Shape()), sites):
            return f"{key}: {short(str(actual))}, expected {short(str(expected))}"
    return None


def _value(got: Json, key: str) -> Json:
    """The value under *key*: a name, a path, or a pattern of names (`$.^reply_.*$`) that one name fits."""
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
    """Address and path; *expected* may be a pattern. *unpack*: a path segment may hide a query."""
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
    """Every parameter that is not ignored is the same; a missing one is an empty one."""
    wanted: Mapping[str, Sequence[str]] = check.query
    if not wanted and not expected.startswith("^"):
        wanted = ParsedUrl.parse(sites.fill(expected)).query
    page = ParsedUrl.parse(actual)
    got = (page.unpacked() if check.base64_query else page).query
    names = {*wanted, *got}
    counted = (name for name in names if not any(re.search(pattern, name) for pattern in check.ignored_query))
    return all(
        _same_values(wanted.get(name) or ("",), got.get(name) or ("",), _item_shape(check, name), sites)
        for name in counted
    )


def _same_values(wanted: Sequence[str], got: Sequence[str], shape: Shape | None, sites: Sites) -> bool:
    def agree(want: str, have: str) -> bool:
        if want.startswith("^"):
            return matches_pattern(want, have, sites)
        same = want.strip().casefold() == have.strip().casefold()
        return same if shape is None else matches(want, have, shape, sites)

    met = all(any(agree(want, have) for have in got) for want in wanted)
    return met and all(any(agree(want, have) for want in wanted) for have in got)


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
    return [] if value is None else [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]
