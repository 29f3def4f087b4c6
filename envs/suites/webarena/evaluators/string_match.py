"""`string_match`: the answer against the reference answers."""

from __future__ import annotations

from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding, short
from envs.suites.webarena.task import StringMatch, Texts
from envs.suites.webarena.texts import includes, plain, same

NOT_ACHIEVABLE = ("n/a", "na", "n.a.", "not achievable", "not applicable")
"""Answers that say no more than that the task cannot be done."""


async def string_match(check: StringMatch, evidence: Evidence) -> Finding:
    """Every reference must be met. Raises JudgeFailed where only a judge could tell and it could not."""
    answer = evidence.answer
    if answer is None or not answer.strip():
        return Finding(False, "no answer was given")
    if check.impossible is not None:
        found = await _says_impossible(check.impossible, answer, evidence)
        if not found.met:
            return found
    return await texts_match(check.texts, answer, evidence)


async def texts_match(texts: Texts, text: str, evidence: Evidence) -> Finding:
    """Shared with `program_html`. What can be told without the judge is told first: it settles most misses."""
    neutral = evidence.sites.neutral
    found = neutral(text)
    if texts.exact is not None and not same(neutral(texts.exact), found):
        return Finding(False, f"{short(text)} is not {short(texts.exact)}")
    for alternatives in texts.includes:
        if not any(includes(neutral(reference), found) for reference in alternatives):
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
