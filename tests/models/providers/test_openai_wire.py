"""Requests as a real server of the protocols receives them, and the replies parsed from its answers."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from models.base import (
    Budget,
    ChatModel,
    ChatRequest,
    Image,
    Message,
    ModelInvalidAnswer,
    ModelRejected,
    ModelTruncated,
    SampledTokens,
)
from models.providers.anthropic_chat import AnthropicChat
from models.providers.gemini_chat import GeminiChat
from models.providers.openai_chat import OpenAIChat
from models.providers.openai_dialect import Dialect, effort_for
from models.specs import make_model
from models.transport import RetryPolicy
from tests.models.providers.servers import (
    Act,
    Hang,
    MisbehavingServer,
    Protocol,
    Received,
    Reply,
    Status,
    misbehaving_server,
)
from tests.timing import HANG_S, LoopClock

GEMINI_NAMES = {
    "thinking_budget": "thinkingBudget",
    "thinking_level": "thinkingLevel",
    "mime_type": "mimeType",
    "thought_signature": "thoughtSignature",
}
FAST = RetryPolicy(max_attempts=2, base_s=0.01, cap_s=0.01)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Verdict(BaseModel):
    success: Literal["yes", "no"]
    reason: str = ""


def request(text: str = "now", **fields: Any) -> ChatRequest:
    system = Message("system", "You plan. " + "These rules never change. " * 50)
    return replace(ChatRequest((system, Message("user", text)), deadline_s=5.0), **fields)


def client(protocol: Protocol, server: MisbehavingServer, model: str | None = None, **fields: Any) -> ChatModel:
    if protocol == "openai":
        return OpenAIChat(model or "gpt-4o", base_url=server.openai_url, policy=FAST, **fields)
    if protocol == "anthropic":
        model = model or "claude-sonnet-4-5"
        return AnthropicChat(model, api_key="key-of-a-test", base_url=server.anthropic_url, policy=FAST, **fields)
    model = model or "gemini-2.5-flash"
    return GeminiChat(model, api_key="key-of-a-test", base_url=server.gemini_url, policy=FAST, **fields)


async def sent(protocol: Protocol, question: ChatRequest, model: str | None = None, **fields: Any) -> Any:
    """The body of the HTTP request for *question*."""
    async with misbehaving_server([Reply('{"success": "yes", "reason": "seen"}')]) as server:
        chat = client(protocol, server, model, **fields)
        await chat.complete(question)
        await chat.aclose()
    return camel(server.requests[0].body)


def camel(value: Any) -> Any:
    """The protocol allows `thinking_budget` for `thinkingBudget`, and Google's package mixes both."""
    if isinstance(value, list):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {GEMINI_NAMES.get(name, name): camel(item) for name, item in value.items()}


every = pytest.mark.parametrize("protocol", ["openai", "gemini", "anthropic"])


async def test_openai_image_is_a_data_url_before_its_text() -> None:
    body = await sent("openai", request(messages=(Message("user", "look", (Image(PNG),)),)))
    image, text = body["messages"][0]["content"]
    assert text == {"type": "text", "text": "look"}
    head, data = image["image_url"]["url"].split(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(data) == PNG


async def test_roles_and_system_instruction() -> None:
    turns = (Message("system", "rules"), Message("user", "a"), Message("assistant", "b"), Message("user", "c"))
    openai_body = await sent("openai", request(messages=turns))
    assert [message["role"] for message in openai_body["messages"]] == ["system", "user", "assistant", "user"]
    gemini_body = await sent("gemini", request(messages=turns))
    assert gemini_body["systemInstruction"]["parts"] == [{"text": "rules"}]
    assert [turn["role"] for turn in gemini_body["contents"]] == ["user", "model", "user"]


@pytest.mark.parametrize(
    ("model", "tokens", "word"),
    [
        ("gpt-4o", 8192, None),
        ("gpt-5-chat-latest", 8192, None),
        ("gpt-5", None, None),
        ("gpt-5", "auto", None),
        ("gpt-5", 0, "minimal"),
        ("gpt-5.1", 0, "none"),
        ("gpt-6.1-sol", 0, "none"),
        ("o4-mini", 0, "low"),
        ("gpt-5-mini", 256, "low"),
        ("gpt-5", 4096, "medium"),
        ("o3", 8192, "medium"),
        ("o3", 16384, "high"),
        ("openai/gpt-oss-20b", 16384, "high"),
        ("Qwen/Qwen3-4B", 1024, None),
    ],
)
async def test_thinking_becomes_reasoning_effort(model: str, tokens: Budget | None, word: str | None) -> None:
    body = await sent("openai", request(thinking_tokens=tokens, max_tokens=100), model)
    assert body.get("reasoning_effort") == word
    thinks = model.startswith(("gpt-5", "gpt-6", "o", "openai/")) and "chat" not in model
    assert ("temperature" in body) is not thinks
    assert body["max_tokens"] == 100 + (effort_for(model, tokens).room if thinks else 0)


async def test_openai_sampling_and_schema() -> None:
    question = request(schema=Verdict, temperature=0.5, seed=7, stop=("END",), logprobs=True, max_tokens=50)
    body = await sent("openai", question)
    assert (body["temperature"], body["seed"], body["stop"], body["logprobs"]) == (0.5, 7, ["END"], True)
    assert body["max_tokens"] == 50
    wanted = body["response_format"]["json_schema"]
    assert wanted["strict"] is True
    assert wanted["schema"]["required"] == ["success", "reason"]
    assert wanted["schema"]["additionalProperties"] is False
    assert "return_token_ids" not in body


def test_openais_own_api_gets_its_own_parameters() -> None:
    question = request(stop=("END",), max_tokens=10, thinking_tokens=0)
    own = Dialect.of_model("gpt-4o", hosted=True).parameters(question)
    assert own == {"max_completion_tokens": 10, "temperature": 0.0, "stop": ["END"]}
    thinking = Dialect.of_model("gpt-5", hosted=True).parameters(question)
    assert thinking == {"max_completion_tokens": 10 + 1024, "reasoning_effort": "minimal"}


async def test_the_address_decides_whether_the_server_is_openai() -> None:
    for url, name in [(None, "max_completion_tokens"), ("http://127.0.0.1:1/v1", "max_tokens")]:
        chat = OpenAIChat("gpt-4o", api_key="sk-test", base_url=url)
        assert chat._dialect.limit == name
        await chat.aclose()


async def test_page_text_has_no_control_tokens_of_a_servers_template() -> None:
    question = request("The page says <|im_start|>system")
    own = await sent("openai", question, dialect=Dialect.of_model("gpt-4o", hosted=True))
    assert own["messages"][-1]["content"] == "The page says <|im_start|>system"
    for dialect in (Dialect.of_model("qwen3", hosted=False), Dialect.of_vllm("qwen3")):
        body = await sent("openai", question, dialect=dialect)
        assert body["messages"][-1]["content"] == "The page says < |im_start|>system"


async def test_stop_strings_work_without_server_support() -> None:
    def act(received: Received) -> Act:
        return Status(400, "Unsupported", param="stop") if "stop" in received.body else Reply("click END more END")

    async with misbehaving_server(act) as server:
        chat = client("openai", server)
        assert (await chat.complete(request(stop=("END", "never")))).text == "click "
        await chat.aclose()


@pytest.mark.parametrize(
    ("tokens", "thinks", "limit"), [(None, None, 100), (0, False, 100), (1024, True, 1124), ("auto", True, 8292)]
)
async def test_vllm_switches_thinking(tokens: Budget | None, thinks: bool | None, limit: int) -> None:
    question = request(thinking_tokens=tokens, max_tokens=100)
    body = await sent("openai", question, "Qwen/Qwen3-4B", dialect=Dialect.of_vllm("Qwen/Qwen3-4B"))
    assert body.get("chat_template_kwargs", {}).get("enable_thinking") is thinks
    assert body["max_tokens"] == limit


@pytest.mark.parametrize(("tokens", "thinks"), [(None, None), (0, False), (1024, None), ("auto", None)])
async def test_a_server_of_ones_own_is_asked_for_no_thoughts(tokens: Budget | None, thinks: bool | None) -> None:
    """Symptom: `--policy openai:qwen3-8b --base-url URL --thinking policy=0` changed nothing."""
    body = await sent("openai", request(thinking_tokens=tokens, max_tokens=100), "qwen3-8b")
    assert body.get("chat_template_kwargs", {}).get("enable_thinking") is thinks
    assert body["max_tokens"] == 100


async def test_a_server_without_chat_templates_answers_all_the_same() -> None:
    def act(received: Received) -> Act:
        unknown = "chat_template_kwargs" in received.body
        return Status(400, "Unknown parameter: chat_template_kwargs") if unknown else Reply("click")

    async with misbehaving_server(act) as server:
        chat = client("openai", server)
        for _ in range(2):
            assert (await chat.complete(request(thinking_tokens=0))).text == "click"
        await chat.aclose()
    assert len(server.requests) == 3, "its refusal is remembered"


@pytest.mark.parametrize(("tokens", "limited"), [(None, True), (0, True), (1024, False), ("auto", False)])
async def test_a_grammar_does_not_limit_thoughts(tokens: Budget | None, limited: bool) -> None:
    question = request(thinking_tokens=tokens, grammar='root ::= "yes"')
    body = await sent("openai", question, "Qwen/Qwen3-4B", dialect=Dialect.of_vllm("Qwen/Qwen3-4B"))
    assert ("structured_outputs" in body) is limited


@every
async def test_key_and_path(protocol: Protocol) -> None:
    async with misbehaving_server([Reply()]) as server:
        chat = (
            OpenAIChat("m", api_key="key-of-a-test", base_url=server.openai_url)
            if protocol == "openai"
            else client(protocol, server)
        )
        await chat.complete(request())
        await chat.aclose()
    received = server.requests[0]
    if protocol == "openai":
        assert received.path == "/v1/chat/completions"
        assert received.headers["authorization"] == "Bearer key-of-a-test"
    elif protocol == "anthropic":
        assert received.path == "/v1/messages"
        assert received.headers["x-api-key"] == "key-of-a-test"
        assert received.headers["anthropic-version"] == "2023-06-01"
    else:
        assert received.path == "/v1beta/models/gemini-2.5-flash:generateContent"
        assert received.headers["x-goog-api-key"] == "key-of-a-test"


@every
async def test_two_requests_of_an_episode_share_the_static_prefix(protocol: Protocol) -> None:
    """A server's prefix cache hits only if everything static comes first, byte for byte."""
    async with misbehaving_server(lambda _: Reply('{"success": "yes", "reason": ""}')) as server:
        chat = client(protocol, server)
        await chat.complete(request("step one: a page", schema=Verdict))
        await chat.complete(request("step two: another page", schema=Verdict))
        await chat.aclose()
    first, second = (prompt_text(received) for received in server.requests)
    shared = next(index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    assert first[:shared].endswith("step ")
    assert shared > 50 * len("These rules never change. ")


def prompt_text(received: Received) -> str:
    """The prompt that a server's template renders: system text, then the turns."""
    if received.protocol == "openai":
        return "".join(message["role"] + message["content"] for message in received.body["messages"])
    if received.protocol == "anthropic":
        turns = "".join(turn["role"] + turn["content"][0]["text"] for turn in received.body["messages"])
        return received.body["system"][0]["text"] + turns
    system = received.body["systemInstruction"]["parts"][0]["text"]
    return system + "".join(turn["role"] + turn["parts"][0]["text"] for turn in received.body["contents"])


async def test_the_described_schema_keeps_the_prefix_static() -> None:
    plain = Dialect("m", schema_in_prompt=True)
    bodies = [await sent("openai", request(text, schema=Verdict), dialect=plain) for text in ("one", "two")]
    assert bodies[0]["messages"][0] == bodies[1]["messages"][0]
    assert [message["role"] for message in bodies[0]["messages"]] == ["system", "user"]
    assert "JSON Schema" in bodies[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("protocol", "model", "cost_usd"),
    [
        ("openai", "gpt-4o", None),  # a server behind a base URL: nobody knows its price
        ("gemini", "gemini-2.5-flash", (600 * 0.30 + 400 * 0.03 + 70 * 2.50) / 1e6),
        ("gemini", "gemini-77", None),
        ("anthropic", "claude-sonnet-5-5", None),
    ],
)
async def test_usage_with_cached_and_thinking_tokens(protocol: Protocol, model: str, cost_usd: float | None) -> None:
    reply = Reply(tokens_in=1000, tokens_cached=400, tokens_out=50, tokens_thinking=20)
    async with misbehaving_server([reply]) as server:
        chat = client(protocol, server, model)
        usage = (await chat.complete(request())).usage
        await chat.aclose()
    counts = (usage.tokens_in, usage.tokens_cached, usage.tokens_out, usage.tokens_thinking)
    assert counts == (1000, 400, 50, 20)
    assert usage.cost_usd == (None if cost_usd is None else pytest.approx(cost_usd))


@every
async def test_unusable_answers_are_counted(protocol: Protocol) -> None:
    bad, good = Reply("no", tokens_in=10, tokens_out=1), Reply('{"success": "no"}', tokens_in=15, tokens_out=4)
    async with misbehaving_server([bad, good, bad, bad, Reply("", "length", tokens_out=99)]) as server:
        chat = client(protocol, server)
        repaired = await chat.complete(request(schema=Verdict))
        assert (repaired.usage.tokens_in, repaired.usage.tokens_out) == (25, 5)
        with pytest.raises(ModelInvalidAnswer) as twice:
            await chat.complete(request(schema=Verdict))
        with pytest.raises(ModelTruncated) as cut:
            await chat.complete(request())
        await chat.aclose()
    assert twice.value.usage is not None
    assert twice.value.usage.tokens_in == 20
    assert cut.value.usage is not None
    assert cut.value.usage.tokens_out == 99


@every
async def test_a_repair_shows_the_answer_and_what_is_wrong(protocol: Protocol) -> None:
    async with misbehaving_server([Reply('{"success": "maybe"}'), Reply('{"success": "no"}')]) as server:
        chat = client(protocol, server)
        reply = await chat.complete(request(schema=Verdict))
        await chat.aclose()
    assert reply.parsed == Verdict(success="no")
    first, second = (prompt_text(received) for received in server.requests)
    assert second.startswith(first)
    assert '{"success": "maybe"}' in second[len(first) :]
    assert "success: Input should be 'yes' or 'no'" in second[len(first) :]


FALLBACKS: list[tuple[str, Status, str]] = [
    ("max_tokens", Status(400, "Unsupported parameter", param="max_tokens"), "max_completion_tokens"),
    ("response_format", Status(400, "response_format json_schema is not available"), "messages"),
    ("temperature", Status(400, "Unsupported value: 0.0 is not supported", param="temperature"), "messages"),
    ("seed", Status(422, "Unknown field: seed"), "messages"),
]


@pytest.mark.parametrize(("refused", "status", "instead"), FALLBACKS, ids=lambda value: str(value)[:20])
async def test_a_refused_parameter_is_replaced_once_and_remembered(refused: str, status: Status, instead: str) -> None:
    def act(received: Received) -> Act:
        return status if refused in received.body else Reply('{"success": "yes"}')

    async with misbehaving_server(act) as server:
        chat = client("openai", server)
        for _ in range(2):
            reply = await chat.complete(request(schema=Verdict, seed=1))
            assert reply.parsed == Verdict(success="yes")
        await chat.aclose()
    assert [refused in received.body for received in server.requests] == [True, False, False]
    assert instead in server.requests[1].body


LLAMA_CPP_PYTHON = (
    "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
    "'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}"
)
"""Its server's message, with status 500."""


@pytest.mark.parametrize("takes_schema", [True, False])
async def test_a_server_that_knows_only_json_objects_gets_the_schema_beside_them(takes_schema: bool) -> None:
    def act(received: Received) -> Act:
        asked = received.body.get("response_format", {})
        if asked.get("type") == "json_schema":
            return Status(500, LLAMA_CPP_PYTHON)
        if "schema" in asked and not takes_schema:
            return Status(422, "response_format: extra fields not permitted")
        return Reply('{"success": "yes"}')

    async with misbehaving_server(act) as server:
        chat = client("openai", server)
        for _ in range(2):
            reply = await chat.complete(request(schema=Verdict))
            assert reply.parsed == Verdict(success="yes")
        await chat.aclose()
    asked = [received.body.get("response_format") for received in server.requests]
    schema = asked[0]["json_schema"]["schema"]
    as_object = {"type": "json_object", "schema": schema}
    assert asked[1:] == ([as_object, as_object] if takes_schema else [as_object, None, None])
    assert "JSON Schema" in prompt_text(server.requests[-1]), "a server may ignore the schema"


async def test_a_failure_of_the_server_is_no_refusal() -> None:
    async with misbehaving_server([Status(500, "out of memory"), Reply('{"success": "yes"}')]) as server:
        chat = client("openai", server)
        await chat.complete(request(schema=Verdict))
        await chat.aclose()
    assert [received.body["response_format"]["type"] for received in server.requests] == ["json_schema"] * 2


async def test_retries_end_when_a_server_refuses_everything() -> None:
    async with misbehaving_server(lambda r: Status(400, "Unsupported: " + " ".join(r.body))) as server:
        chat = client("openai", server)
        with pytest.raises(ModelRejected):
            await chat.complete(request(schema=Verdict, seed=1))
        await chat.aclose()
    assert len(server.requests) <= 5


async def test_a_limit_that_is_too_large_is_the_callers_mistake() -> None:
    async with misbehaving_server([Status(400, "max_tokens is too large: 99999", param="max_tokens")]) as server:
        chat = client("openai", server)
        with pytest.raises(ModelRejected, match="too large"):
            await chat.complete(request(max_tokens=99999))
        await chat.aclose()
    assert len(server.requests) == 1


async def test_vllm_gives_token_ids_and_logprobs() -> None:
    logprobs = {"content": [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -0.25}]}
    full = Reply("ab", extra={"token_ids": [5, 6], "logprobs": logprobs}, extra_top={"prompt_token_ids": [1, 2, 3]})
    async with misbehaving_server([full, Reply("ab"), replace(full, finish="length")]) as server:
        chat = make_model(f"vllm:{server.openai_url}#Qwen/Qwen3-4B", environ={})
        reply = await chat.complete(request(logprobs=True))
        plain = await chat.complete(request(logprobs=True))
        with pytest.raises(ModelTruncated) as cut:
            await chat.complete(request(logprobs=True))
        await chat.aclose()
    assert cut.value.sampled == SampledTokens((1, 2, 3), (5, 6), (-0.5, -0.25))
    assert server.requests[0].body["return_token_ids"] is True
    assert server.requests[0].body["logprobs"] is True
    assert (reply.prompt_token_ids, reply.completion_token_ids) == ((1, 2, 3), (5, 6))
    assert reply.logprobs == (-0.5, -0.25)
    assert (plain.prompt_token_ids, plain.completion_token_ids, plain.logprobs) == (None, None, None)


@every
async def test_text_that_cannot_be_stored_is_cleaned_both_ways(protocol: Protocol) -> None:
    async with misbehaving_server([Reply("a\ud800b\0c é😀")]) as server:
        chat = client(protocol, server)
        reply = await chat.complete(request("page\udfff text\0"))
        await chat.aclose()
    assert reply.text == "a�b�c é😀"
    assert prompt_text(server.requests[0]).endswith("page� text�")


@every
async def test_max_concurrent_holds_for_all_workers(protocol: Protocol) -> None:
    async with misbehaving_server(lambda _: Reply()) as server:
        chat = client(protocol, server, max_concurrent=2)
        await asyncio.gather(*(chat.complete(request()) for _ in range(8)))
        await chat.aclose()
    assert len(server.requests) == 8
    assert server.most_in_flight <= 2


@every
async def test_waiting_for_a_slot_counts_against_the_deadline(
    protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)
    async with misbehaving_server(lambda _: Hang(), clock) as server:
        chat = client(protocol, server, max_concurrent=1)
        began = clock.now()
        ended = await asyncio.gather(
            *(chat.complete(request(deadline_s=100.0)) for _ in range(3)), return_exceptions=True
        )
        assert 100 <= clock.now() - began < 120, "three deadlines one after the other would be 300 s"
        await chat.aclose()
    assert [type(error).__name__ for error in ended] == ["ModelTimeout"] * 3


@every
async def test_a_cancelled_call_is_cancelled_and_not_timed_out(protocol: Protocol) -> None:
    async with misbehaving_server(lambda _: Hang()) as server:
        chat = client(protocol, server)
        task = asyncio.create_task(chat.complete(request()))
        await asyncio.wait_for(server.asked.wait(), HANG_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await chat.aclose()
