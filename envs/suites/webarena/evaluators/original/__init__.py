"""Reproduces the benchmarks' own verdicts (`--strict-original`): libwebarena 0.0.5 and webarena-verified 1.2.3.

It reimplements the rules of those packages, including their faults, so that scores can be compared with published
ones. If their evaluator raises an error, the check is not met, because their harnesses count such a task as failed.
Three rules differ: a page with a 5xx response gives no verdict, pages are read in an isolated script world, and an
answer that is itself a pattern (`^.*$`) matches only itself. Comparisons by meaning use the run's judge.
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
    """Evaluates *check*. Raises CheckBroken, JudgeFailed, BadInput like :mod:`envs.suites.webarena.evaluators`."""
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
