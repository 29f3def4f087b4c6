"""The benchmarks' own verdicts (`--strict-original`): libwebarena 0.0.5 and webarena-verified 1.2.3, rule by rule.

Written anew from what those packages do, faults included, so that a score can be put beside a published one. Where
their evaluator raises an error, the check is not met: their harnesses count such a task as failed. Three things stay
ours: a page that a site answers with 5xx gives no verdict, pages are read in a script world of our own, and an answer
that is itself a pattern (`^.*$`) matches nothing but itself. Comparisons by meaning ask the run's judge.
"""

from __future__ import annotations

from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding
from envs.suites.webarena.evaluators.original.raw import program_html, string_match, url_match
from envs.suites.webarena.evaluators.original.request import request_sent
from envs.suites.webarena.evaluators.original.response import agent_response
from envs.suites.webarena.task import AgentResponse, Check, ProgramHtml, RequestSent, StringMatch, UrlMatch

__all__ = ["original_verdict"]


async def original_verdict(check: Check, evidence: Evidence) -> Finding:
    """Raises CheckBroken, JudgeFailed, BadInput as the evaluators of :mod:`envs.suites.webarena.evaluators` do."""
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
