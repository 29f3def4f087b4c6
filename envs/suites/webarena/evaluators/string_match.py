"""`string_match`: compares the answer with the reference answers."""

from __future__ import annotations

from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding, short
from envs.suites.webarena.task import StringMatch, Texts
from envs.suites.webarena.texts import includes, plain, same

NOT_ACHIEVABLE = ("n/a", "na", "n.a.", "not achievable", "not applicable")
"""Answers that only say that the task cannot be done."""


async def string_match(check: StringMatch, evidence: Evidence) -> Finding:
    """Checks all references. Raises JudgeFailed if a needed judge gives no verdict."""
    answer = evidence.answer
    if answer is None or not answer.strip():
        return Finding(False, "no answer was given")
    if check.impossible is not None:
        finding = await _says_impossible(check.impossible, answer, evidence)
        if not finding.met:
            return finding
    return await texts_match(check.texts, answer, evidence)


async def texts_match(texts: Texts, text: str, evidence: Evidence) -> Finding:
    """Checks a text; also for `program_html`. Checks without the judge run first, because they decide most misses."""
    neutral = evidence.sites.neutral
    actual = neutral(text)
    if texts.exact is not None and not same(neutral(texts.exact), actual):
        return Finding(False, f"{short(text)} is not {short(texts.exact)}")
    for alternatives in texts.includes:
        if not any(includes(neutral(reference), actual) for reference in alternatives):
            return Finding(False, f"{short(' or '.join(alternatives))} is not in {short(text)}")
    for reference in texts.fuzzy:
        if not same(reference, text) and not await evidence.judge(evidence.intent, reference, text):
            return Finding(False, f"the judge does not find {short(reference)} in {short(text)}")
    return Finding(True, f"as expected: {short(text)}")


async def _says_impossible(reason: str, answer: str, evidence: Evidence) -> Finding:
    if plain(answer).strip(" .!'\"") in NOT_ACHIEVABLE:
        return Finding(True, "the answer says that it cannot be done")
    reference = f"The task cannot be done{': ' + reason if reason else ''}"
    if await evidence.judge(evidence.intent, reference, answer):
        return Finding(True, "the answer says that it cannot be done, and why")
    return Finding(False, f"the task cannot be done, the answer does not say so: {short(answer)}")
