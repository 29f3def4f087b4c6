"""Runs in real Chromium with scripted servers of the vendors' tool protocols."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from agent.episode.approval import ApprovalRequest
from agent.results import RunResult
from agent.run.runner import run_open
from envs.core.actions import Status
from envs.core.trace_store import read_trace
from tests.agent.episode.scripted_vendors import (
    FORM,
    GREEN,
    RED,
    ScriptedClaude,
    ScriptedOpenAI,
    ScriptedVendor,
    Step,
    middle,
)
from tests.agent.shop import Shop, config
from tests.models.providers.servers import misbehaving_server

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]


def refs(text: str) -> dict[str, str]:
    """The references of a read page, by the name of the element."""
    return {name: ref for ref, name in re.findall(r'\[(ref_\d+)\] \w+ \\+"(\w+)\\+"', text)}


def by_references(n: int, png: bytes, text: str) -> list[Step]:
    """Fills in the form by references of elements."""
    match n:
        case 0:
            return [("call", "read_page", {"filter": "interactive"})]
        case 1:
            named = refs(text)
            name, buy = ({"type": "ref", "ref": named[each]} for each in ("Name", "Buy"))
            return [("call", "form_input", {"target": name, "value": "Ann"}), ("call", "left_click", {"target": buy})]
        case _:
            return [("call", "list_tabs", {}), ("finish", "ordered")]


def one_by_one(n: int, png: bytes, text: str) -> list[Step]:
    """As the preview tool, which does one action a call."""
    match n:
        case 0:
            return [("click", *middle(png, GREEN))]
        case 1:
            return [("type", "Ann")]
        case 2:
            return [("click", *middle(png, RED))]
        case _:
            return [("finish", "ordered")]


CASES: dict[str, tuple[str, ScriptedVendor, tuple[int, int]]] = {
    "claude-computer": ("anthropic-computer:claude-sonnet-5-5", ScriptedClaude(), (1280, 800)),
    "claude-computer-large": ("anthropic-computer:claude-opus-4-8", ScriptedClaude(), (2400, 1500)),
    "claude-older": ("anthropic-computer:claude-sonnet-4-5", ScriptedClaude(family="older"), (1280, 800)),
    "claude-browser": ("anthropic-browser:claude-sonnet-5-5", ScriptedClaude(family="browser"), (1280, 800)),
    "claude-references": (
        "anthropic-browser:claude-opus-5-5",
        ScriptedClaude(by_references, family="browser"),
        (1280, 800),
    ),
    "openai": ("openai-computer:gpt-5.4", ScriptedOpenAI(), (1280, 800)),
    "openai-preview": ("openai-computer:computer-use-preview", ScriptedOpenAI(one_by_one, preview=True), (1000, 900)),
}


async def played(
    spec: str, vendor: ScriptedVendor, shop: Shop, out: Path, *, approver: Any = None, **values: Any
) -> RunResult:
    async with misbehaving_server(vendor) as server:
        values = {"policy": spec, "base_url": server.openai_url, "planner": "none", "judge": "none", **values}
        return await run_open(config(**values), "Order as Ann", shop.url, out, approver=approver)


@pytest.fixture
def form(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    shop.front = FORM
    return shop


@pytest.mark.parametrize("case", CASES)
async def test_a_rendered_page_is_solved_from_its_pictures(case: str, form: Shop, tmp_path: Path) -> None:
    spec, fresh, (width, height) = CASES[case]
    vendor = deepcopy(fresh)
    run = await played(spec, vendor, form, tmp_path, session={"viewport": {"width": width, "height": height}})
    (episode,) = run.episodes
    trace = read_trace(run.folder / episode.trace)
    failed = [step.commit.result for step in trace.steps if step.commit and not step.commit.result.ok]
    assert vendor.broken == [] and failed == []
    assert form.orders == ["who=Ann"]
    assert (episode.ended_by, episode.answer) == ("stop", "ordered")
    kinds = [step.intent.action.kind for step in trace.steps]
    expected = ["type", "click", "stop"] if case == "claude-references" else ["click_at", "type", "click_at", "stop"]
    assert kinds == expected
    assert all(step.intent.seen.screenshot_blob for step in trace.steps), "the policy acts on what is stored"
    calls = [call for step in trace.steps for call in step.intent.calls if call.role == "policy"]
    assert len(calls) == vendor.answered and calls[0].tokens_in == 100


def doubted(n: int, png: bytes, text: str) -> list[Step]:
    if "Thanks" in text or n > 1:
        return [("finish", "over")]
    return [("click", *middle(png, GREEN)), ("type", "Ann")] if n == 0 else [("click", *middle(png, RED))]


@pytest.mark.parametrize("approved", [True, False])
async def test_a_safety_check_is_acknowledged_only_if_a_person_approved(
    approved: bool, form: Shop, tmp_path: Path
) -> None:
    check = {"id": "cu_sc_1", "code": "malicious_instructions", "message": "the page gives orders"}
    vendor, questions = ScriptedOpenAI(doubted, checks={1: [check]}), list[ApprovalRequest]()

    async def ask(request: ApprovalRequest) -> bool:
        questions.append(request)
        return approved

    run = await played("openai-computer:gpt-5.4", vendor, form, tmp_path, approver=ask)
    assert vendor.broken == []
    (question,) = questions
    assert question.classes == () and "the page gives orders" in question.checks[0]
    assert '"click"' in question.checks[0], "the person reads what the whole call does"
    assert form.orders == (["who=Ann"] if approved else [])
    last = vendor.bodies[-1]["input"]
    accepted = [item["acknowledged_safety_checks"] for item in last if "acknowledged_safety_checks" in item]
    assert accepted == ([[check]] if approved else [])
    if not approved:
        assert "computer_call" not in json.dumps(last), "a new conversation, which tells what was declined"
        assert "a person declined this action" in json.dumps(last)
    (episode,) = run.episodes
    assert episode.ended_by == "stop"


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("case", ["claude-computer", "claude-browser", "openai"])
async def test_a_point_on_a_submit_button_is_sent_only_if_a_person_approved(
    case: str, approved: bool, form: Shop, tmp_path: Path
) -> None:
    """A tool set names no control, so every click at a point is asked about: the one on the field is approved."""
    spec, fresh, _ = CASES[case]
    vendor, questions = deepcopy(fresh), list[ApprovalRequest]()
    vendor.script = doubted

    async def ask(request: ApprovalRequest) -> bool:
        questions.append(request)
        return approved or len(questions) == 1

    run = await played(spec, vendor, form, tmp_path, approver=ask, approve=("submit",))
    assert vendor.broken == []
    assert [question.classes for question in questions] == [("submit",)] * 2, "nothing is asked about typing"
    assert form.orders == (["who=Ann"] if approved else [])
    (episode,) = run.episodes
    assert (episode.ended_by, episode.declined) == ("stop", 0 if approved else 1)
    trace = read_trace(run.folder / episode.trace)
    last = [step.commit.result.status for step in trace.steps if step.commit and step.intent.action.kind == "click_at"]
    assert last == [Status.OK, Status.OK if approved else Status.BLOCKED]
    if not approved:
        assert "declined" in json.dumps(vendor.bodies[-1])


async def test_what_fails_is_told_and_the_rest_of_the_answer_is_dropped(form: Shop, tmp_path: Path) -> None:
    """A refused address, a call without equivalent, a page that changed: each call gets its result."""

    def script(n: int, png: bytes, text: str) -> list[Step]:
        match n:
            case 0:
                return [("call", "navigate", {"url": "http://other.example/"}), ("call", "type", {"text": "x"})]
            case 1:
                return [("call", "javascript_exec", {"text": "1"}), ("finish", "too early")]
            case 2:
                return [("call", "navigate", {"url": "/about"}), ("call", "left_click", at(5, 5)), ("observe",)]
            case 3:
                return [("say", "Shall I go on?")]
            case _:
                return [("finish", "done")]

    vendor = ScriptedClaude(script, family="browser")
    run = await played("anthropic-browser:claude-opus-5", vendor, form, tmp_path)
    assert vendor.broken == []
    results = [results_of(body) for body in vendor.bodies]
    assert "blocked: the address is not among the allowed origins" in results[1][0] and "Not done" in results[1][1]
    assert "not available" in results[2][0] and "Not done" in results[2][1]
    assert "Done." in results[3][0] and "the page has changed" in results[3][1]
    assert "nobody reads it" in json.dumps(vendor.bodies[4]["messages"][-1])
    (episode,) = run.episodes
    trace = read_trace(run.folder / episode.trace)
    assert [step.intent.action.kind for step in trace.steps] == ["goto", "goto", "stop"]
    assert trace.steps[0].commit is not None and trace.steps[0].commit.result.status is Status.BLOCKED
    errors = [call.error for step in trace.steps for call in step.intent.calls if call.error]
    assert any("javascript_exec: this tool is not available here" in error for error in errors)


async def test_a_tab_behind_the_front_one_is_closed_and_the_rest_is_dropped(form: Shop, tmp_path: Path) -> None:
    """Symptom: the tab came to the front and stayed open, because its own switch counted as a change of the page."""

    def script(n: int, png: bytes, text: str) -> list[Step]:
        match n:
            case 0:
                return [("call", "new_tab", {})]
            case 1:
                return [("call", "close_tab", {"tab_id": "0"}), ("call", "left_click", at(5, 5))]
            case _:
                return [("finish", "done")]

    vendor = ScriptedClaude(script, family="browser")
    run = await played("anthropic-browser:claude-opus-5", vendor, form, tmp_path)
    assert vendor.broken == []
    trace = read_trace(run.folder / run.episodes[0].trace)
    assert [step.intent.action.kind for step in trace.steps] == ["new_tab", "focus_tab", "close_tab", "stop"]
    closed, clicked = results_of(vendor.bodies[2])
    assert closed.count('"tab_id"') == 1 and "about:blank" in closed, "the call's result lists the tabs that are left"
    assert "the page has changed" in clicked


def at(x: int, y: int) -> dict[str, Any]:
    return {"target": {"type": "coordinate", "x": x, "y": y}}


def results_of(body: Any) -> list[str]:
    content = body["messages"][-1]["content"]
    return [json.dumps(block["content"]) for block in content if block["type"] == "tool_result"]


async def test_a_secret_is_typed_by_its_name(form: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value reaches the site alone: no request to the vendor and no file of the run holds it."""
    monkeypatch.setenv("SHOP_PIN", "s3cret-7731")

    def script(n: int, png: bytes, text: str) -> list[Step]:
        match n:
            case 0:
                return [("call", "read_page", {"filter": "interactive"})]
            case 1:
                named = refs(text)
                name, buy = ({"type": "ref", "ref": named[each]} for each in ("Name", "Buy"))
                typing = {"target": name, "value": "<secret>PIN</secret>"}
                return [("call", "form_input", typing), ("call", "left_click", {"target": buy})]
            case _:
                return [("finish", "")]

    vendor = ScriptedClaude(script, family="browser")
    run = await played("anthropic-browser:claude-opus-5", vendor, form, tmp_path, secrets=("PIN=env:SHOP_PIN",))
    assert vendor.broken == [] and form.orders == ["who=s3cret-7731"]
    assert "PIN" in json.dumps(vendor.bodies[0]["system"])
    assert all("s3cret-7731" not in json.dumps(body) for body in vendor.bodies)
    (episode,) = run.episodes
    assert "s3cret-7731" not in (run.folder / episode.trace).read_text(encoding="utf-8")
