"""`program_html`: checks the contents of pages after the agent has stopped."""

from __future__ import annotations

from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding
from envs.suites.webarena.evaluators.helpers import address_of, content_of
from envs.suites.webarena.evaluators.string_match import texts_match
from envs.suites.webarena.task import Address, Call, LastPage, PageCheck, ProgramHtml


async def program_html(check: ProgramHtml, evidence: Evidence) -> Finding:
    """Checks every page. Raises CheckBroken, JudgeFailed, BadInput (a variable that is not set)."""
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
            text = await evidence.pages.text(tab, check.what)
        shown = tab.page.url
    finding = await texts_match(check.texts, text, evidence)
    return Finding(finding.met, f"{shown}: {finding.why}")


async def address_for(check: PageCheck, evidence: Evidence) -> str | LastPage:
    """The address of the page, or the last page. Raises CheckBroken, BadInput."""
    match check.where:
        case LastPage():
            return check.where
        case Address():
            return evidence.sites.fill(check.where.url)
        case Call():
            return await address_of(check.where, evidence)
