"""`url_match`: compares the address at which the agent stopped with references ("GOLD in PRED").

It requires the same origin, the reference's path as a prefix of complete path segments, and every query
parameter of the reference with its value. So `/f/books` matches `/f/books/new` but not `/f/bookshelf`,
and each alternative has its own parameters.
"""

from __future__ import annotations

from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding, short
from envs.suites.webarena.task import UrlMatch
from envs.suites.webarena.urls import ParsedUrl


def url_match(check: UrlMatch, evidence: Evidence) -> Finding:
    """Checks the last address. Raises BadInput if the variable of a site in a reference is not set."""
    page = ParsedUrl.parse(evidence.url)
    references = [evidence.sites.fill(reference.strip()) for reference in check.urls]
    if any(ParsedUrl.parse(reference).is_in(page) for reference in references):
        return Finding(True, f"the agent stopped at {short(evidence.url)}")
    return Finding(False, f"the agent stopped at {short(evidence.url)}, expected {short(' or '.join(references), 200)}")
