"""Builds own task entries in the three published formats."""

from __future__ import annotations

from typing import Any


def raw(
    *,
    task_id: int = 7,
    sites: list[str] | None = None,
    start_url: str = "__SHOPPING__",
    intent: str = "How many tins are left?",
    answers: dict[str, Any] | None = None,
    reference_url: str = "",
    program_html: list[dict[str, Any]] | None = None,
    note: str = "",
) -> dict[str, Any]:
    """An entry in WebArena's format, with a check for each given reference."""
    if answers is None and not reference_url and not program_html:
        answers = {"must_include": ["2"]}
    types = [("string_match", answers), ("url_match", reference_url), ("program_html", program_html)]
    return {
        "sites": sites or ["shopping"],
        "task_id": task_id,
        "require_login": True,
        "storage_state": "./.auth/shopping_state.json",
        "start_url": start_url,
        "geolocation": None,
        "intent_template": intent,
        "instantiation_dict": {},
        "intent": intent,
        "require_reset": False,
        "eval": {
            "eval_types": [name for name, reference in types if reference],
            "reference_answers": answers,
            "reference_url": reference_url,
            "program_html": program_html or [],
            "string_note": note,
            "url_note": "GOLD in PRED",
        },
        "intent_template_id": 1,
    }


def page(url: str, locator: str, *, prep_actions: list[str] | None = None, **required: Any) -> dict[str, Any]:
    """An entry of `program_html`."""
    extra = {"prep_actions": prep_actions} if prep_actions else {}
    return {"url": url, "locator": locator, "required_contents": required, **extra}


def response(data: list[Any] | None = None, *, task_type: str = "mutate", **more: Any) -> dict[str, Any]:
    """An `AgentResponseEvaluator`."""
    expected = {"task_type": task_type, "status": more.pop("status", "SUCCESS"), "retrieved_data": data}
    schema = more.pop("schema", {"type": "null"})
    return {"evaluator": "AgentResponseEvaluator", "results_schema": schema, "expected": expected, **more}


def request(url: str | list[str], **more: Any) -> dict[str, Any]:
    """A `NetworkEventEvaluator`; arguments that belong to `expected` are moved there."""
    inside = {"http_method", "post_data", "response_status", "query_params", "headers"}
    inside |= {"response_content", "response_cookies"}
    expected = {"url": url, **{name: more.pop(name) for name in list(more) if name in inside}}
    return {"evaluator": "NetworkEventEvaluator", "expected": expected, **more}


def verified(
    *evaluators: dict[str, Any], task_id: int = 7, site: str = "shopping", start: str = "", intent: str = "Do it."
) -> dict[str, Any]:
    """An entry in WebArena-Verified's format."""
    return {
        "sites": [site],
        "task_id": task_id,
        "intent_template_id": 1,
        "start_urls": [start or f"__{site.upper()}__"],
        "intent": intent,
        "intent_template": intent,
        "instantiation_dict": {},
        "eval": list(evaluators) or [response()],
        "revision": 2,
    }
