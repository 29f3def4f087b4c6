"""`string_match`: the answer against the reference answers."""

from __future__ import annotations

from envs.webarena.evaluators.finding import Finding, FuzzyJudge, short
from envs.webarena.sites import Sites
from envs.webarena.task import StringMatch, Texts
from envs.webarena.texts import includes, plain, same

NOT_ACHIEVABLE = ("n/a", "na", "n.a.", "not achievable", "not applicable")
"""Answers that say no more than that the task cannot be done."""


async def string_match(check: StringMatch, intent: str, answer: str | None, sites: Sites, judge: FuzzyJudge) -> Finding:
    """Every reference must be met. Raises JudgeFailed where only a judge could tell and it could not."""
    if answer is None or not answer.strip():
        return Finding(False, "no answer was given")
    spoken = sites.published(answer)
    if check.impossible is not None:
        found = await _says_impossible(check.impossible, intent, spoken, judge)
        if not found.met:
            return found
    return await texts_match(check.texts, intent, spoken, judge)


async def texts_match(texts: Texts, question: str, text: str, judge: FuzzyJudge) -> Finding:
    """Shared with `program_html`. What can be told without the judge is told first: it settles most misses."""
    if texts.exact is not None and not same(texts.exact, text):
        return Finding(False, f"{short(text)} is not {short(texts.exact)}")
    for alternatives in texts.includes:
        if not any(includes(reference, text) for reference in alternatives):
            return Finding(False, f"{short(' or '.join(alternatives))} is not in {short(text)}")
    for reference in texts.fuzzy:
        if not same(reference, text) and not await judge(question, reference, text):
            return Finding(False, f"the judge does not find {short(reference)} in {short(text)}")
    return Finding(True, f"as expected: {short(text)}")


async def _says_impossible(reason: str, intent: str, answer: str, judge: FuzzyJudge) -> Finding:
    if plain(answer).strip(" .!'\"") in NOT_ACHIEVABLE:
        return Finding(True, "the answer says that it cannot be done")
    reference = f"The task cannot be done{': ' + reason if reason else ''}"
    if await judge(intent, reference, answer):
        return Finding(True, "the answer says that it cannot be done, and why")
    return Finding(False, f"the task cannot be done, the answer does not say so: {short(answer)}")
