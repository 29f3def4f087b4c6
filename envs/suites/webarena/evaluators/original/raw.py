"""Reimplements the evaluators of libwebarena 0.0.5, for WebArena and (through BrowserGym) WebArena-Lite."""

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
    """Compares the answer with the references. Raises JudgeFailed if a needed judge gives no verdict."""
    answer = clean(evidence.answer or "")
    texts = check.texts
    if texts.unlisted:
        return Finding(False, f"must_include is no list but {texts.includes[0][0]!r}: the original's evaluator fails")
    for met, reference in _without_judge(texts, answer, evidence):
        if not met:
            return Finding(False, f"{short(answer)} does not match {short(reference)}")
    if check.impossible is not None and not same(NOT_ACHIEVABLE, answer):
        reference = f"The task cannot be done{': ' + check.impossible if check.impossible else ''}"
        return Finding(await evidence.judge(evidence.intent, reference, answer), f"the judge compared {short(answer)}")
    for reference in texts.fuzzy:
        if not await evidence.judge(evidence.intent, reference, answer):
            return Finding(False, f"the judge does not find {short(reference)} in {short(answer)}")
    return Finding(True, f"as expected: {short(answer)}")


def _without_judge(texts: Texts, answer: str, evidence: Evidence) -> list[tuple[bool, str]]:
    """The references that need no judge, and whether they are met. Alternatives are supported in pages only."""
    fill = evidence.sites.fill
    exact = [(same(fill(texts.exact), answer), texts.exact)] if texts.exact is not None else []
    references = [fill(OR.join(alternatives)) for alternatives in texts.includes]
    alone = len(references) == 1
    return [*exact, *((includes(reference, answer, alone=alone), reference) for reference in references)]


def url_match(check: UrlMatch, evidence: Evidence) -> Finding:
    """Checks that the page's address contains host and path of one reference, and of each parameter a value of any
    reference."""
    page, page_query = _split(evidence.url.rstrip("/"))
    references = [_split(evidence.sites.fill(url).rstrip("/")) for url in check.urls]
    values: dict[str, set[str]] = defaultdict(set)
    for _, query in references:
        for name, accepted in query.items():
            values[name].update(accepted)
    met = any(path in page for path, _ in references) and all(
        accepted & set(page_query.get(name, ())) for name, accepted in values.items()
    )
    return Finding(met, f"the agent stopped at {short(evidence.url)}")


def _split(url: str) -> tuple[str, dict[str, list[str]]]:
    parts = urlparse(url)
    return parts.netloc + parts.path, parse_qs(parts.query)


async def program_html(check: ProgramHtml, evidence: Evidence) -> Finding:
    """Checks every page. Raises CheckBroken if a page cannot be read."""
    finding = Finding(False, "no page was checked")
    for page in check.pages:
        finding = await _check_page(page, evidence)
        if not finding.met:
            return finding
    return finding


async def _check_page(check: PageCheck, evidence: Evidence) -> Finding:
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
        met = same(fill(texts.exact), text)
        return Finding(met, f"{shown}: {short(text)} is {'' if met else 'not '}{short(texts.exact)}")
    if not texts.includes:
        return Finding(False, f"{shown}: the original's evaluator cannot compare pages by meaning and fails")
    for alternatives in texts.includes:
        if not any(includes(fill(reference), text) for reference in alternatives):
            return Finding(False, f"{shown}: {short(OR.join(alternatives))} is not in {short(text)}")
    return Finding(True, f"{shown}: as expected")
