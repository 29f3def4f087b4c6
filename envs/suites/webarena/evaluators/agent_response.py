"""`AgentResponseEvaluator` of WebArena-Verified: the answer is one JSON object, compared value by value."""

from __future__ import annotations

import json
import re

from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.finding import Finding, short
from envs.suites.webarena.folding import bare
from envs.suites.webarena.json_text import load_json
from envs.suites.webarena.task import AgentResponse, Json
from envs.suites.webarena.values import same_items

ANSWER_FORMAT = (
    'Give your answer as one JSON object: {"task_type": "RETRIEVE", "MUTATE" or "NAVIGATE", "status": "SUCCESS", '
    '"ACTION_NOT_ALLOWED_ERROR", "PERMISSION_DENIED_ERROR", "NOT_FOUND_ERROR", "DATA_VALIDATION_ERROR" or '
    '"UNKNOWN_ERROR", "retrieved_data": a list of what was asked for, or null if nothing was, "error_details": null, '
    "or why it failed}."
)
"""The format of the answer, added to the intent."""

_FENCE = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


def agent_response(check: AgentResponse, evidence: Evidence) -> Finding:
    """Compares kind of task, status and, for a task that retrieves data, the data."""
    answer = _parse(evidence.answer)
    if answer is None:
        return Finding(False, f"the answer is no JSON object: {short(evidence.answer or '')}")
    task_type = bare(str(answer.get("task_type", answer.get("performed_operation", ""))).strip().lower())
    if task_type != check.task_type:
        return Finding(False, f"task_type is {short(task_type)}, expected {check.task_type!r}")
    status = bare(str(answer.get("status", "")).strip().upper())
    if status != check.status:
        return Finding(False, f"status is {short(status)}, expected {check.status!r}")
    if check.task_type != "retrieve":
        return Finding(True, f"the answer says {check.task_type}, {status}")
    return _data(check, answer.get("retrieved_data"), evidence)


def _data(check: AgentResponse, data: Json, evidence: Evidence) -> Finding:
    items: list[Json] = [] if data is None or data in ("", {}) else data if isinstance(data, list) else [data]
    shown = short(json.dumps(items))
    if not check.data:
        return Finding(not items, f"retrieved_data is {shown}, expected none")
    shape = check.shape.items or check.shape
    if same_items(check.data, items, shape, evidence.sites, ordered=check.ordered):
        return Finding(True, f"retrieved_data is {shown} as expected")
    return Finding(False, f"retrieved_data is {shown}, expected {short(json.dumps(check.data))}")


def _parse(answer: str | None) -> dict[str, Json] | None:
    """The JSON object in the answer, which may be inside one code fence."""
    text = (answer or "").strip()
    fenced = _FENCE.search(text)
    try:
        value = load_json(fenced[1] if fenced else text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
