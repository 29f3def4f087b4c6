"""`url_match`: the page that the agent stopped at ("GOLD in PRED").

The same origin, the reference's path as a prefix of whole path segments, every query parameter of
the reference with its value. So `/f/books` matches `/f/books/new` but not `/f/bookshelf`, and each
alternative brings its own parameters.
"""

from __future__ import annotations

from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding, short
from envs.suites.webarena.task import UrlMatch
from envs.suites.webarena.urls import ParsedUrl


def url_match(check: UrlMatch, evidence: Evidence) -> Finding:
    """Raises BadInput where the reference names a site whose variable is not set."""
    page = ParsedUrl.parse(evidence.url)
    wanted = [evidence.sites.fill(reference.strip()) for reference in check.urls]
    if any(ParsedUrl.parse(reference).is_in(page) for reference in wanted):
        return Finding(True, f"the agent stopped at {short(evidence.url)}")
    return Finding(False, f"the agent stopped at {short(evidence.url)}, expected {short(' or '.join(wanted), 200)}")
