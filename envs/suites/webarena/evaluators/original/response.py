"""Reimplements `AgentResponseEvaluator` of webarena-verified 1.2.3."""

from __future__ import annotations

import json
import re

from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding, short
from envs.suites.webarena.evaluators.original.kinds import read_known
from envs.suites.webarena.evaluators.original.places import derender_to
from envs.suites.webarena.evaluators.original.readers import Unreadable
from envs.suites.webarena.evaluators.original.structure import Part, read_items, same
from envs.suites.webarena.json_text import load_json
from envs.suites.webarena.task import AgentResponse, Json

_FENCE = re.compile(r"```(?:json)?\s*\n?(.*?)\n?```", re.DOTALL)


def agent_response(check: AgentResponse, evidence: Evidence) -> Finding:
    """Compares kind of task, status and (for a task that retrieves data) the data."""
    answer = _answer(evidence.answer or "")
    if not isinstance(answer, dict):
        return Finding(False, f"the answer is no JSON object: {short(evidence.answer or '')}")
    task_type = answer.get("task_type", answer.get("performed_operation"))
    for name, expected, actual in (
        ("task_type", check.task_type, task_type),
        ("status", check.status, answer.get("status")),
    ):
        if not _same_word(expected, actual):
            return Finding(False, f"{name} is {short(str(actual))}, expected {expected!r}")
    if check.unset_data:
        return Finding(False, "the reference has no retrieved_data, so the original accepts no answer")
    if check.task_type != "retrieve":
        return Finding(True, f"the answer says {check.task_type}, {check.status}")
    met = _same_data(check, answer.get("retrieved_data"), evidence)
    shown = short(json.dumps(answer.get("retrieved_data")))
    return Finding(
        met, f"retrieved_data is {shown}" + (" as expected" if met else f", expected {short(json.dumps(check.data))}")
    )


def _answer(text: str) -> Json:
    fenced = _FENCE.search(text)
    text = fenced[1].strip() if fenced else text.strip()
    try:
        return load_json(text)
    except ValueError:
        return None


def _same_word(expected: str, actual: Json) -> bool:
    if not isinstance(actual, str) or not actual.strip():
        return False
    return same(read_known(expected, "string", str), read_known(actual.strip(), "string", str))


def _same_data(check: AgentResponse, data: Json, evidence: Evidence) -> bool:
    try:
        expected = _items(check, list(check.data or ()), evidence, strict=True)
        actual = _items(check, data, evidence, strict=False)
    except Unreadable:
        return False
    return same(expected, actual, ordered=check.ordered)


def _items(check: AgentResponse, data: Json, evidence: Evidence, *, strict: bool) -> tuple[Part, ...] | None:
    if not data and not isinstance(data, int | float):
        return None
    items = tuple(data) if isinstance(data, list) else (data,)
    return read_items(items, check.shape, derender_to(evidence, strict=strict), strict=strict)
