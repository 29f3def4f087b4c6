"""Evaluators, one module for each kind of check. Each takes a check and the evidence, and returns a finding.

`evaluate` selects the module; with *original* the benchmark's own rules apply, see
:mod:`envs.suites.webarena.evaluators.original`. A check that cannot be made raises CheckBroken, JudgeFailed or
BadInput. The episode is then *broken*, which says nothing about the agent.
"""

from __future__ import annotations

from collections.abc import Sequence

from envs.suites.webarena.evaluators.agent_response import agent_response
from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding, FuzzyJudge, JudgeFailed, no_judge
from envs.suites.webarena.evaluators.original import original_verdict
from envs.suites.webarena.evaluators.program_html import program_html
from envs.suites.webarena.evaluators.request_sent import request_sent
from envs.suites.webarena.evaluators.string_match import string_match
from envs.suites.webarena.evaluators.url_match import url_match
from envs.suites.webarena.task import AgentResponse, Check, ProgramHtml, RequestSent, StringMatch, UrlMatch

__all__ = ["Evidence", "Finding", "FuzzyJudge", "JudgeFailed", "evaluate", "in_cheap_order", "no_judge"]

_COST = {"url_match": 0, "agent_response": 0, "request_sent": 1, "string_match": 2, "program_html": 3}


async def evaluate(check: Check, evidence: Evidence, *, original: bool = False) -> Finding:
    """Evaluates *check*. *original*: by the rules of the benchmark's own evaluator."""
    if original:
        return await original_verdict(check, evidence)
    match check:
        case StringMatch():
            return await string_match(check, evidence)
        case UrlMatch():
            return url_match(check, evidence)
        case ProgramHtml():
            return await program_html(check, evidence)
        case AgentResponse():
            return agent_response(check, evidence)
        case RequestSent():
            return request_sent(check, evidence)


def in_cheap_order(checks: Sequence[Check]) -> list[Check]:
    """Sorts checks by cost. All must be met, so a cheap failure saves the others."""
    return sorted(checks, key=lambda check: _COST[check.kind])
