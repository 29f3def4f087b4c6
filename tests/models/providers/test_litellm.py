"""The LiteLLM adapter: what is sent and received, and a contract test for each part of LiteLLM that is not its API.

Skipped where the extra `litellm` is not installed.
"""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("litellm")

import httpx

from models.base import (
    ChatRequest,
    Effort,
    Image,
    Message,
    ModelRejected,
    ModelUnavailable,
)
from models.providers.litellm_chat import LiteLLMChat
from models.providers.litellm_setup import LOGGERS, RecordingTransport, loaded, recording
from models.specs import make_model, parse_spec, price_known
from tests.models.providers.servers import (
    MisbehavingServer,
    Received,
    Reply,
    Status,
    misbehaving_server,
)
from tests.models.providers.speakers import FAST, KEY, Shopping
from tests.models.providers.test_openai_wire import PNG, Verdict, camel, request
from tests.timing import HANG_S

ROOT = Path(__file__).parents[3]
PATHS = {"gemini": "/v1beta"}
ANSWER = Reply('{"success": "yes", "reason": "seen"}')


def chat_of(server: MisbehavingServer, spec: str) -> LiteLLMChat:
    provider, _, model = spec.partition("/")
    url = f"http://127.0.0.1:{server.port}{PATHS.get(provider, '/v1')}"
    return LiteLLMChat(provider, model, api_key=KEY, base_url=url, policy=FAST)


async def received(spec: str, question: ChatRequest) -> Received:
    """The HTTP request for *question*."""
    async with misbehaving_server([ANSWER]) as server:
        chat = chat_of(server, spec)
        await chat.complete(question)
        await chat.aclose()
    return server.requests[0]


async def body_of(spec: str, question: ChatRequest) -> Any:
    return camel((await received(spec, question)).body)


async def test_pictures_and_roles_in_the_protocol_of_the_provider() -> None:
    turns = (Message("system", "rules"), Message("user", "look", (Image(PNG),)))
    body = await body_of("mistral/pixtral-large-latest", request(messages=turns))
    assert body["messages"][0] == {"role": "system", "content": "rules"}
    image, text = body["messages"][1]["content"]
    assert text == {"type": "text", "text": "look"}
    url = image["image_url"] if isinstance(image["image_url"], str) else image["image_url"]["url"]
    assert base64.b64decode(url.split(",")[1]) == PNG
    native = await body_of("gemini/gemini-2.5-flash", request(messages=turns))
    parts = native["contents"][0]["parts"]
    inline = next(part for part in parts if "text" not in part)
    assert PNG in [base64.b64decode(value) for value in _strings(inline) if len(value) > 40]


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for child in value.values() for text in _strings(child)]
    return [value] if isinstance(value, str) else []


async def test_a_schema_is_sent_where_the_model_takes_one_and_described_elsewhere() -> None:
    known = await body_of("gemini/gemini-2.5-flash", request(schema=Verdict))
    assert "schema" in str(known["generationConfig"]).lower()
    unknown = await body_of("openai/scripted-model", request(schema=Verdict))
    assert "response_format" not in unknown
    assert "JSON Schema" in unknown["messages"][0]["content"]


async def test_sampling_that_the_provider_does_not_take_is_not_sent() -> None:
    question = request(temperature=0.5, seed=7, stop=("END",), logprobs=True, max_tokens=50)
    body = await body_of("openai/scripted-model", question)
    assert (body["temperature"], body["seed"], body["stop"], body["logprobs"]) == (0.5, 7, ["END"], True)
    assert body["max_tokens"] == 50
    mistral = await body_of("mistral/mistral-large-latest", question)
    assert mistral["temperature"] == 0.5 and "logprobs" not in mistral


async def test_no_temperature_is_sent_to_gemini_3() -> None:
    for model, sent in (("gemini-2.5-flash", True), ("gemini-3-pro-preview", False)):
        body = await body_of(f"gemini/{model}", request(temperature=0.0))
        assert ("temperature" in body["generationConfig"]) is sent


@pytest.mark.parametrize(
    ("tokens", "effort", "budget"), [(0, None, 0), (1024, None, 1024), (None, "high", 4096), (None, None, None)]
)
async def test_thinking_of_a_model_that_litellm_knows(
    tokens: int | None, effort: Effort | None, budget: int | None
) -> None:
    body = await body_of("gemini/gemini-2.5-flash", request(thinking_tokens=tokens, effort=effort))
    thinking = body["generationConfig"].get("thinkingConfig", {})
    assert thinking.get("thinkingBudget") == budget
    assert ("temperature" in body["generationConfig"]) is (not budget)


async def test_a_named_effort_that_the_model_does_not_take_is_refused_and_not_left_out() -> None:
    async with misbehaving_server(lambda _: ANSWER) as server:
        chat = chat_of(server, "mistral/mistral-large-latest")
        assert (await chat.complete(request(thinking_tokens=8192))).attempts == 1
        with pytest.raises(ModelRejected, match="reasoning_effort") as caught:
            await chat.complete(request(effort="high", stop=("END",)))
        assert not caught.value.answered
        assert len(server.requests) == 1
        await chat.complete(request(stop=("END",)))
        await chat.aclose()
    assert camel(server.requests[1].body)["stop"] == ["END"], "other roles of the same model keep their parameters"


async def test_what_is_refused_beside_a_named_effort_is_left_out_of_that_call_only() -> None:
    async with misbehaving_server([ANSWER, ANSWER]) as server:
        chat = chat_of(server, "openai/gpt-5.1")
        await chat.complete(request(effort="high", logprobs=True))
        await chat.complete(request(effort="none", logprobs=True))
        await chat.aclose()
    first, second = (camel(each.body) for each in server.requests)
    assert first["reasoning_effort"] == "high" and "logprobs" not in first
    assert (second["reasoning_effort"], second["logprobs"]) == ("none", True)


def test_a_model_that_is_not_known_to_think_takes_an_effort_alone() -> None:
    known, unknown = parse_spec("litellm:anthropic/claude-sonnet-4-5"), parse_spec("litellm:azure/my-deployment")
    assert not known.ignores_thinking(1024) and unknown.ignores_thinking(1024)
    assert not unknown.ignores_thinking("high")


async def test_usage_with_cached_and_thinking_tokens() -> None:
    reply = Reply(tokens_in=1000, tokens_cached=400, tokens_out=50, tokens_thinking=20)
    async with misbehaving_server(lambda _: reply) as server:
        for spec in ("openai/scripted-model", "gemini/gemini-2.5-flash"):
            chat = chat_of(server, spec)
            usage = (await chat.complete(request())).usage
            await chat.aclose()
            counts = (usage.tokens_in, usage.tokens_cached, usage.tokens_out, usage.tokens_thinking)
            assert counts == (1000, 400, 50, 20), spec
            assert usage.cost_usd is None, "nobody knows the prices of a server behind a base URL"


async def test_cost_by_litellms_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contract: `_hidden_params["response_cost"]`, and `model_cost` with prices by name."""
    async with misbehaving_server([Reply(tokens_in=1000, tokens_cached=400, tokens_out=100)]) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        chat = make_model("litellm:openai/gpt-4o")
        usage = (await chat.complete(request())).usage
        await chat.aclose()
    row = loaded()._package.model_cost["gpt-4o"]
    fresh, cached = 600 * row["input_cost_per_token"], 400 * row["cache_read_input_token_cost"]
    assert usage.cost_usd == pytest.approx(fresh + cached + 100 * row["output_cost_per_token"])
    assert price_known("litellm:openai/gpt-4o", environ={})
    assert not price_known("litellm:openai/gpt-4o", base_url="http://127.0.0.1:1/v1", environ={})
    assert not price_known("litellm:azure/my-deployment", environ={})


async def test_the_base_url_takes_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_BASE", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    async with misbehaving_server([Reply("here")]) as server:
        chat = make_model("litellm:mistral/mistral-large-latest", base_url=server.openai_url)
        assert (await chat.complete(request())).text == "here"
        await chat.aclose()
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert chat.spec == "litellm:mistral/mistral-large-latest"


async def test_an_unknown_provider_and_a_missing_key_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelUnavailable, match="LiteLLM has no provider 'nosuch'"):
        make_model("litellm:nosuch/m")
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    chat = make_model("litellm:mistral/mistral-large-latest", base_url="http://127.0.0.1:1/v1", policy=FAST)
    with pytest.raises(ModelUnavailable, match="the server of") as caught:
        await chat.complete(request())
    await chat.aclose()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["rate limit 429", "This model's maximum context length is 5", "timeout", "Invalid prompt"]
)
@pytest.mark.parametrize("spec", ["openai/scripted-model", "mistral/mistral-large-latest"])
async def test_text_that_an_error_quotes_does_not_classify_it(spec: str, text: str) -> None:
    """LiteLLM searches the text of errors. A 400 that quotes a page is no rate limit, and is not sent again."""
    async with misbehaving_server([Status(400, f"bad request: {text}")]) as server:
        chat = chat_of(server, spec)
        with pytest.raises(ModelRejected, match="HTTP 400") as caught:
            await chat.complete(request())
        await chat.aclose()
    assert caught.value.answered and len(server.requests) == 1


async def test_what_a_provider_calls_its_end_is_read() -> None:
    """Contract: `native_finish_reason`. LiteLLM turns `error` into `stop`."""
    for finish in ("error", "network_error"):
        async with misbehaving_server([Reply("half", extra={"finish_reason": finish}), Reply("ok")]) as server:
            chat = chat_of(server, "openai/scripted-model")
            reply = await chat.complete(request())
            await chat.aclose()
        assert (reply.text, reply.attempts) == ("ok", 2)


async def test_no_call_is_reported_or_repeated_by_litellm() -> None:
    """Contract: callbacks, caches, fallbacks and retries."""
    await received("openai/scripted-model", request())
    package = loaded()._package
    named = "callbacks input_callback success_callback failure_callback _async_success_callback _async_failure_callback"
    registered = {callback for name in named.split() for callback in getattr(package, name)}
    assert registered <= {"cache"}, "that one belongs to LiteLLM and does nothing without a cache"
    assert (package.cache, package.model_fallbacks, package.num_retries, package.drop_params) == (
        None,
        None,
        None,
        False,
    )
    assert package.suppress_debug_info is True


def test_the_import_uses_no_network_and_reads_no_env_file() -> None:
    """Contract: :data:`models.providers.litellm_setup.ENVIRONMENT`, and the names of loggers."""
    program = f"""
import logging, sys, threading
import dotenv
seen = []
sys.addaudithook(lambda event, _: seen.append(event) if event in ("socket.connect", "socket.getaddrinfo") else None)
dotenv.load_dotenv = lambda *args, **settings: seen.append(".env")
from models.providers.litellm_setup import loaded
loaded().provider_of("mistral", "m")
assert loaded().parameters("bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0")
print(seen, [thread.name for thread in threading.enumerate()])
print([name for name in {LOGGERS!r} if not logging.getLogger(name).handlers and name == "LiteLLM"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S, cwd=ROOT, check=True
    )
    assert done.stdout.splitlines() == ["[] ['MainThread']", "[]"]
    assert done.stderr == ""


@pytest.mark.parametrize("spec", ["openai/scripted-model", "mistral/mistral-large-latest", "gemini/gemini-2.5-flash"])
async def test_every_exchange_is_recorded(spec: str) -> None:
    """Contract: `AsyncHTTPHandler.create_async_transport` makes the transport of each client."""
    async with misbehaving_server([Status(429, retry_after="7")]) as server:
        chat = chat_of(server, spec)
        with recording() as exchange, pytest.raises(Exception, match="scripted error"):
            await loaded().complete(**chat._required(request()))
        await chat.aclose()
    assert (exchange.status, exchange.headers["retry-after"], exchange.error) == (429, "7", None)
    assert b"scripted error" in exchange.body


async def test_calls_of_other_code_are_left_alone() -> None:
    """A redirect is followed, and nothing is recorded."""

    def answer(sent: httpx.Request) -> httpx.Response:
        if sent.url.path == "/old":
            return httpx.Response(307, headers={"location": "/new"})
        return httpx.Response(200, text=sent.url.path)

    transport = RecordingTransport(httpx.MockTransport(answer))
    async with httpx.AsyncClient(transport=transport, base_url="http://host", follow_redirects=True) as client:
        assert (await client.get("/old")).text == "/new"
        with recording() as exchange, pytest.raises(httpx.RemoteProtocolError, match="redirects"):
            await client.get("/old")
    assert (exchange.status, exchange.headers["location"]) == (307, "/new")


@pytest.mark.parametrize("spec", ["openai/scripted-model", "mistral/mistral-large-latest"])
async def test_a_closed_model_leaves_no_closed_connection_to_the_next(spec: str) -> None:
    """Contract: `in_memory_llm_clients_cache` holds clients with a `_client` and its `_transport`."""
    package: Any = loaded()._package
    async with misbehaving_server(lambda _: Reply("ok")) as server:
        for _ in range(2):
            chat = chat_of(server, spec)
            assert (await chat.complete(request())).attempts == 1
            before = len(package.in_memory_llm_clients_cache.cache_dict)
            await chat.aclose()
            assert len(package.in_memory_llm_clients_cache.cache_dict) < before
        # A client of other code stays open.
        foreign = {"model": spec, "messages": [{"role": "user", "content": "hi"}], "api_key": KEY}
        await package.acompletion(**foreign, base_url=server.openai_url)
        chat = chat_of(server, spec)
        await chat.aclose()
        await package.acompletion(**foreign, base_url=server.openai_url)
        await package.close_litellm_async_clients()
        package.in_memory_llm_clients_cache.flush_cache()


async def test_answers_are_typed() -> None:
    async with misbehaving_server([Reply("Here: no"), Reply('{"item": "lamp", "price": 3.5}')]) as server:
        chat = chat_of(server, "mistral/mistral-large-latest")
        reply = await chat.complete(request(schema=Shopping))
        await chat.aclose()
    assert reply.parsed == Shopping(item="lamp", price=3.5) and reply.attempts == 2
