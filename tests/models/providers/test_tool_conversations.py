"""Conversations with tool sets: for any behaviour of a server a call ends with an answer or a typed error in time."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from models import transport
from models.asking import calls_end_at, converse
from models.base import (
    ChatRequest,
    Image,
    Message,
    ModelBusy,
    ModelError,
    ModelInvalidAnswer,
    ModelOutOfTime,
    ModelRejected,
    ModelTimeout,
    ModelTruncated,
    ModelUnavailable,
)
from models.providers.anthropic_tools import AnthropicTools
from models.providers.openai_computer import OpenAIComputer
from models.tool_use import (
    FunctionTool,
    ModelTurn,
    Results,
    SafetyCheck,
    ToolCall,
    ToolModel,
    ToolRequest,
    ToolResult,
)
from models.transport import RetryPolicy
from tests.models.providers.servers import (
    Act,
    Body,
    Close,
    CutOff,
    Drip,
    Hang,
    Received,
    Reply,
    Status,
    misbehaving_server,
)
from tests.timing import LoopClock

KEY = "sk-secret-key-of-this-test"
FAST = RetryPolicy(max_attempts=3, base_s=0.01, cap_s=0.02)
DEADLINE_S = 100.0
REQUEST = ToolRequest("the rules", (Message("user", "Goal: tea"),), (1280, 800), deadline_s=DEADLINE_S)
Vendor = Literal["anthropic", "openai"]
Ending = Literal["ok", "length", "refusal", "empty", "abort", "filter"]


def answer(vendor: Vendor, ending: Ending = "ok") -> Body:
    """A whole answer of the vendor; an `ok` one clicks at (3, 4)."""
    made = _claude(ending) if vendor == "anthropic" else _openai(ending)
    return Body(json.dumps(made))


def _claude(ending: Ending) -> dict[str, Any]:
    ends = {"ok": "tool_use", "length": "max_tokens", "empty": "end_turn", "abort": "pause_turn"}
    stop = {**ends, "refusal": "refusal", "filter": "refusal"}  # Anthropic's filters end an answer as a refusal
    click = {"name": "left_click", "toolset_name": "computer", "input": {"coordinate": [3, 4]}}
    content = [] if ending == "empty" else [{"type": "tool_use", "id": "toolu_1", **click}]
    usage = {"input_tokens": 90, "cache_read_input_tokens": 10, "output_tokens": 7}
    return {"type": "message", "content": content, "stop_reason": stop[ending], "usage": usage}


def _openai(ending: Ending) -> dict[str, Any]:
    call = {"type": "computer_call", "call_id": "call_1", "actions": [{"type": "click", "x": 3, "y": 4}]}
    refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}
    output = {"refusal": [refusal], "empty": []}.get(ending, [call])
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    filtered = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    state = {"length": cut, "filter": filtered, "abort": {"status": "in_progress"}}.get(ending, {"status": "completed"})
    usage = {"input_tokens": 100, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 10}}
    return {"object": "response", "output": output, "usage": usage, **state}


def client(vendor: Vendor, url: str) -> AnthropicTools | OpenAIComputer:
    if vendor == "anthropic":
        return AnthropicTools("claude-opus-5", toolset="computer", api_key=KEY, base_url=url, policy=FAST)
    return OpenAIComputer("gpt-5.4", api_key=KEY, base_url=f"{url}/v1", policy=FAST)


@dataclass(frozen=True)
class Case:
    name: str
    script: tuple[Act | Ending, ...]
    sent: int
    error: type[ModelError] | None = None
    says: str = ""


CASES = [
    Case("answers", ("ok",), 1),
    Case("429-then-ok", (Status(429, retry_after="0"), "ok"), 2),
    Case("500-529-then-ok", (Status(500), Status(529), "ok"), 3),
    Case("closes-then-ok", (Close(), "ok"), 2),
    Case("cut-off-then-ok", (CutOff(), "ok"), 2),
    Case("hangs-then-ok", (Hang(), "ok"), 2),
    Case("drips-then-ok", (Drip(), "ok"), 2),
    Case("broken-json-then-ok", (Body('{"content": [{"ty'), "ok"), 2),
    Case("aborted-then-ok", ("abort", "ok"), 2),
    Case("always-429", (Status(429, "slow down"),) * 3, 3, ModelBusy, "slow down"),
    Case("always-500", (Status(500, "oh no"),) * 3, 3, ModelBusy, "oh no"),
    Case("retry-after-past-deadline", (Status(429, "wait", retry_after="3600"),), 1, ModelBusy, "pass the deadline"),
    Case("always-cut-off", (CutOff(),) * 3, 3, ModelTruncated),
    Case("bad-gzip", (Body("{}", headers=(("Content-Encoding", "gzip"),)),) * 3, 3, ModelTruncated),
    Case("never-the-protocol", (Body('{"hello": []}'),) * 3, 3, ModelInvalidAnswer),
    Case("hangs", (Hang(),) * 3, 2, ModelTimeout, "deadline"),
    Case("length", ("length",), 1, ModelTruncated, "max_tokens"),
    Case("refusal", ("refusal",), 1, ModelRejected, "refused"),
    Case("content-filter", ("filter",), 1, ModelRejected),
    Case("empty", ("empty",), 1, ModelInvalidAnswer, "empty"),
    Case("401", (Status(401, f"wrong key {KEY}"),), 1, ModelRejected, "check the API key"),
    Case("404", (Status(404, "no such model"),), 1, ModelRejected, "no such model"),
    Case("400", (Status(400, "nonsense"),), 1, ModelRejected, "nonsense"),
    Case("redirect", (Status(307, headers=(("Location", "http://127.0.0.1:9/"),)),), 1, ModelRejected, "redirects"),
]
both = pytest.mark.parametrize("vendor", ["anthropic", "openai"])


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> LoopClock:
    made = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", made.now)
    monkeypatch.setattr(transport, "CLOCK", made)
    return made


@both
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_call_ends_with_a_typed_error_in_time(vendor: Vendor, case: Case, clock: LoopClock) -> None:
    script = [answer(vendor, each) if isinstance(each, str) else each for each in case.script]
    async with misbehaving_server(script, clock) as server:
        model = client(vendor, server.anthropic_url)
        began = clock.now()
        if case.error is None:
            reply = await model.converse(REQUEST)
            (call,) = reply.turn.calls
            assert reply.reply.attempts == case.sent
            assert call.arguments in ({"coordinate": [3, 4]}, {"actions": [{"type": "click", "x": 3, "y": 4}]})
            spent = (reply.reply.usage.tokens_in, reply.reply.usage.tokens_cached, reply.reply.usage.tokens_out)
            assert spent == ((200, 20, 14) if "aborted" in case.name else (100, 10, 7)), "broken answers are billed too"
        else:
            with pytest.raises(ModelError) as caught:
                await model.converse(REQUEST)
            assert type(caught.value) is case.error and case.says in str(caught.value)
            assert KEY not in str(caught.value) and "\n" not in str(caught.value)
            assert caught.value.attempts == case.sent
            if case.name in ("length", "refusal", "content-filter", "empty"):
                assert caught.value.usage is not None and caught.value.usage.tokens_out == 7
        assert clock.now() - began < DEADLINE_S + 20
        assert len(server.requests) == case.sent
        await model.aclose()


@both
async def test_a_closed_port_is_unavailable(vendor: Vendor) -> None:
    async with misbehaving_server([]) as gone:
        pass
    model = client(vendor, gone.anthropic_url)
    with pytest.raises(ModelUnavailable, match="cannot reach"):
        await model.converse(REQUEST)
    await model.aclose()


async def test_openai_parameters_that_a_server_refuses_are_left_out() -> None:
    def act(received: Received) -> Act:
        for name in ("include", "store"):
            if name in received.body:
                return Status(400, f"Unsupported parameter: {name}", param=name)
        return answer("openai")

    async with misbehaving_server(act) as server:
        model = client("openai", server.anthropic_url)
        for _ in range(2):
            await model.converse(REQUEST)
        await model.aclose()
    assert ["include" in received.body for received in server.requests] == [True, False, False, False]
    assert server.requests[0].path == "/v1/responses"


@both
async def test_the_same_model_plans_and_judges_as_a_chat_model(vendor: Vendor) -> None:
    async with misbehaving_server([Reply("a plan")]) as server:
        model = client(vendor, server.anthropic_url)
        assert isinstance(model, ToolModel)
        assert (await model.complete(ChatRequest((Message("user", "plan"),), deadline_s=5.0))).text == "a plan"
        await model.aclose()
    assert "tools" not in server.requests[0].body


@both
async def test_the_time_of_the_episode_bounds_a_call(vendor: Vendor) -> None:
    async with misbehaving_server([]) as server:
        model = client(vendor, server.anthropic_url)
        with calls_end_at(0.0), pytest.raises(ModelOutOfTime):
            await converse(model, REQUEST)
        await model.aclose()
    assert server.requests == []


@pytest.mark.parametrize(
    ("model", "family", "tool", "beta"),
    [
        ("claude-opus-5-5", "computer", "computer_toolset_20260801", None),
        ("claude-opus-4-8", "browser", "browser_toolset_20260801", None),
        ("claude-opus-4-6", "computer", "computer_20251124", "computer-use-2025-11-24"),
        ("claude-haiku-4-5", "computer", "computer_20250124", "computer-use-2025-01-24"),
    ],
)
async def test_the_tool_fits_the_model(model: str, family: Any, tool: str, beta: str | None) -> None:
    async with misbehaving_server([answer("anthropic")]) as server:
        claude = AnthropicTools(model, toolset=family, base_url=server.anthropic_url)
        await claude.converse(REQUEST)
        await claude.aclose()
    (received,) = server.requests
    assert received.body["tools"][-1]["type"] == tool
    assert received.headers.get("anthropic-beta") == beta
    assert ("display_width_px" in received.body["tools"][-1]) is (beta is not None)
    assert received.body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}


async def test_requests_fit_the_types_of_openais_package() -> None:
    """The package's types are the published form of the protocol: a part that they do not know would be lost."""
    check = SafetyCheck("cu_sc_1", "code", "message")
    wire = {"type": "computer_call", "id": "cu_1", "call_id": "c1", "status": "completed", "action": {"type": "wait"}}
    call = ToolCall("c1", "computer", {"actions": [{"type": "wait"}]}, "computer", checks=(check,))
    other = ToolCall("f1", "finish", {}, is_function=True)
    picture = Image(b"png")
    turn = ModelTurn(({**wire, "pending_safety_checks": [{"id": "cu_sc_1"}]},), "", (call, other))
    results = (ToolResult(call, "", picture, acknowledged=(check,)), ToolResult(other, "no", is_error=True))
    history = (Message("user", "go", (picture,)), turn, Results(results, Message("user", "news", (picture,))))
    finish = FunctionTool("finish", "Ends.", {"type": "object", "properties": {}})
    async with misbehaving_server([answer("openai")] * 2) as server:
        for name in ("gpt-5.4", "computer-use-preview"):
            model = OpenAIComputer(name, base_url=f"{server.anthropic_url}/v1")
            await model.converse(ToolRequest("rules", history, (1280, 800), (finish,), thinking_tokens=4096))
            await model.aclose()
    published = TypeAdapter(ResponseCreateParamsNonStreaming)
    for received in server.requests:
        known = published.validate_python(received.body)
        assert json.loads(json.dumps(known, default=list)) == received.body
