"""The evaluators of libwebarena 0.0.5, which WebArena and (through BrowserGym) WebArena-Lite are scored with."""

from __future__ import annotations

import html
from collections import defaultdict
from urllib.parse import parse_qs, urlparse

from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding, short
from envs.suites.webarena.evaluators.helpers import content_of
from envs.suites.webarena.evaluators.original.texts import clean, includes, same
from envs.suites.webarena.evaluators.program_html import address_for
from envs.suites.webarena.task import OR, Call, PageCheck, ProgramHtml, StringMatch, Texts, UrlMatch

NOT_ACHIEVABLE = "N/A"


async def string_match(check: StringMatch, evidence: Evidence) -> Finding:
    """Raises JudgeFailed where a judge is asked and cannot tell."""
    said = clean(evidence.answer or "")
    texts = check.texts
    if texts.unlisted:
        return Finding(False, f"must_include is no list but {texts.includes[0][0]!r}: the original's evaluator fails")
    for met, wanted in _told(texts, said, evidence):
        if not met:
            return Finding(False, f"{short(said)} does not match {short(wanted)}")
    if check.impossible is not None and not same(NOT_ACHIEVABLE, said):
        reference = f"The task cannot be done{': ' + check.impossible if check.impossible else ''}"
        return Finding(await evidence.judge(evidence.intent, reference, said), f"the judge compared {short(said)}")
    for reference in texts.fuzzy:
        if not await evidence.judge(evidence.intent, reference, said):
            return Finding(False, f"the judge does not find {short(reference)} in {short(said)}")
    return Finding(True, f"as expected: {short(said)}")


def _told(texts: Texts, said: str, evidence: Evidence) -> list[tuple[bool, str]]:
    """Every reference that needs no judge, and whether it is met. Alternatives are known in pages only."""
    fill = evidence.sites.fill
    found = [(same(fill(texts.exact), said), texts.exact)] if texts.exact is not None else []
    wanted = [fill(OR.join(alternatives)) for alternatives in texts.includes]
    return [*found, *((includes(one, said, alone=len(wanted) == 1), one) for one in wanted)]


def url_match(check: UrlMatch, evidence: Evidence) -> Finding:
    """Host and path of one reference within those of the page; of each parameter, a value of any reference."""
    page, asked = _split(evidence.url.rstrip("/"))
    references = [_split(evidence.sites.fill(url).rstrip("/")) for url in check.urls]
    values: dict[str, set[str]] = defaultdict(set)
    for _, query in references:
        for name, said in query.items():
            values[name].update(said)
    met = any(path in page for path, _ in references) and all(
        said & set(asked.get(name, ())) for name, said in values.items()
    )
    return Finding(met, f"the agent stopped at {short(evidence.url)}")


def _split(url: str) -> tuple[str, dict[str, list[str]]]:
    parts = urlparse(url)
    return parts.netloc + parts.path, parse_qs(parts.query)


async def program_html(check: ProgramHtml, evidence: Evidence) -> Finding:
    """Raises CheckBroken where a page cannot be looked at."""
    found = Finding(False, "no page was looked at")
    for page in check.pages:
        found = await _look(page, evidence)
        if not found.met:
            return found
    return found


async def _look(check: PageCheck, evidence: Evidence) -> Finding:
    async with evidence.pages.at(await address_for(check, evidence)) as tab:
        if isinstance(check.what, Call):
            text = await content_of(check.what, tab, evidence)
        else:
            text = await evidence.pages.raw_text(tab, check.what)
        shown = tab.page.url
    return _holds(check.texts, html.unescape(text), evidence, shown)


def _holds(texts: Texts, text: str, evidence: Evidence, shown: str) -> Finding:
    fill = evidence.sites.fill
    if texts.exact is not None:
        met, wanted = same(fill(texts.exact), text), texts.exact
        return Finding(met, f"{shown}: {short(text)} is {'' if met else 'not '}{short(wanted)}")
    if not texts.includes:
        return Finding(False, f"{shown}: the original's evaluator knows no comparison by meaning of pages and fails")
    for alternatives in texts.includes:
        if not any(includes(fill(one), text) for one in alternatives):
            return Finding(False, f"{shown}: {short(OR.join(alternatives))} is not in {short(text)}")
    return Finding(True, f"{shown}: as expected")
