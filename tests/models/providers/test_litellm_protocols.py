"""The LiteLLM adapter with other protocols and credentials: Azure, Bedrock, Anthropic, vLLM, Ollama, Vertex AI.

Skipped where the extra `litellm` is not installed.
"""

from __future__ import annotations

import asyncio
import json
from typing import Literal

import pytest

pytest.importorskip("litellm")

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from models import transport
from models.base import (
    ChatModel,
    ModelBusy,
    ModelError,
    ModelInvalidAnswer,
    ModelRejected,
    ModelTimeout,
    ModelTruncated,
    ModelUnavailable,
)
from models.specs import make_model
from models.transport import RetryPolicy
from tests.models.providers.servers import (
    Act,
    Body,
    Close,
    Hang,
    MisbehavingServer,
    Reply,
    Status,
    misbehaving_server,
)
from tests.models.providers.speakers import KEY
from tests.models.providers.test_openai_wire import camel, request
from tests.timing import HANG_S, LoopClock

RETRY_ONCE = RetryPolicy(max_attempts=2, base_s=0.01, cap_s=0.01)
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12, "cacheReadInputTokens": 4},
    "metrics": {"latencyMs": 1},
}
MESSAGES = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "scripted",
    "content": [{"type": "text", "text": "hello"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 2},
}
OLLAMA = {"model": "m", "message": {"role": "assistant", "content": "hello"}, "done": True, "done_reason": "stop"}


KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIA-of-this-test",
    "AWS_SECRET_ACCESS_KEY": KEY,
    "AWS_REGION_NAME": "us-east-1",
    "ANTHROPIC_API_KEY": KEY,
    "AZURE_API_KEY": KEY,
    "AZURE_API_VERSION": "1",
}


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def native(spec: str, end: Literal["length", "refusal"]) -> tuple[Act] | None:
    """An answer that hit its limit of tokens or was withheld; None: the protocol of *spec* has no such answer."""
    match spec.partition("/")[0]:
        case "bedrock":
            reasons = {"length": "max_tokens", "refusal": "guardrail_intervened"}
            return (Body(json.dumps({**CONVERSE, "stopReason": reasons[end]})),)
        case "anthropic":
            reasons = {"length": "max_tokens", "refusal": "refusal"}
            return (Body(json.dumps({**MESSAGES, "stop_reason": reasons[end]})),)
        case "ollama_chat":
            return (Body(json.dumps({**OLLAMA, "done_reason": "length"})),) if end == "length" else None
        case _:
            return (Reply("hello", finish="length") if end == "length" else Reply("", finish="content_filter"),)


@pytest.mark.parametrize(
    ("spec", "path", "answer", "cached"),
    [
        ("azure/my-deployment", "/openai/deployments/my-deployment/chat/completions", Reply("hello"), 0),
        ("bedrock/qwen.qwen3-32b-v1:0", "/model/qwen.qwen3-32b-v1:0/converse", Body(json.dumps(CONVERSE)), 4),
        ("anthropic/claude-sonnet-4-5", "/v1/messages", Body(json.dumps(MESSAGES)), 4),
        ("hosted_vllm/my-model", "/chat/completions", Reply("hello"), 0),
        ("ollama_chat/llama3", "/api/chat", Body(json.dumps(OLLAMA)), 0),
    ],
)
@pytest.mark.usefixtures("keys")
async def test_other_protocols(spec: str, path: str, answer: Act, cached: int) -> None:
    acts = [Status(429, retry_after="0"), answer, Status(401, f"wrong key {KEY}"), Close(), Close()]
    async with misbehaving_server(acts) as server:
        chat = make_model(f"litellm:{spec}", base_url=f"http://127.0.0.1:{server.port}", policy=RETRY_ONCE)
        reply = await chat.complete(request())
        with pytest.raises(ModelRejected, match=r"HTTP 401: .*check the API key") as wrong:
            await chat.complete(request())
        with pytest.raises(ModelTruncated, match="broke off"):
            await chat.complete(request())
        await chat.aclose()
    assert (reply.text, reply.attempts, reply.usage.tokens_cached) == ("hello", 2, cached)
    assert KEY not in str(wrong.value)
    assert [sent.path for sent in server.requests] == [path] * 5


SPECS = (
    *("azure/my-deployment", "bedrock/qwen.qwen3-32b-v1:0", "anthropic/claude-sonnet-4-5"),
    *("hosted_vllm/my-model", "ollama_chat/llama3"),
)
ENDINGS: dict[str, tuple[tuple[Act, ...] | Literal["length", "refusal"], type[ModelError], str]] = {
    "500": ((Status(500, "oh no"),) * 2, ModelBusy, "oh no"),
    "hangs": ((Hang(),) * 2, ModelTimeout, "deadline"),
    "never-the-protocol": ((Body('{"hello": []}'),) * 2, ModelInvalidAnswer, ""),
    "length": ("length", ModelTruncated, "max_tokens"),
    "refusal": ("refusal", ModelRejected, ""),
}
MISBEHAVIOUR = [
    pytest.param(spec, script, error, says, id=f"{spec.partition('/')[0]}-{name}")
    for spec in SPECS
    for name, (acts, error, says) in ENDINGS.items()
    if (script := native(spec, acts) if isinstance(acts, str) else acts) is not None
]


@pytest.mark.parametrize(("spec", "script", "error", "says"), MISBEHAVIOUR)
@pytest.mark.usefixtures("keys")
async def test_other_protocols_end_with_a_typed_error(
    spec: str, script: tuple[Act, ...], error: type[ModelError], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)
    monkeypatch.setattr(transport, "CLOCK", clock)
    async with misbehaving_server(script, clock) as server:
        chat = make_model(f"litellm:{spec}", base_url=f"http://127.0.0.1:{server.port}", policy=RETRY_ONCE)
        with pytest.raises(ModelError) as caught:
            await chat.complete(request(deadline_s=100.0))
        await chat.aclose()
    assert type(caught.value) is error and says in str(caught.value), caught.value
    assert KEY not in str(caught.value) and "\n" not in str(caught.value)
    assert len(server.requests) == len(script) == caught.value.attempts


def service_account(token_uri: str) -> str:
    """The JSON of a Google service account with a key of this test."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    account = {"type": "service_account", "project_id": "of-the-account", "private_key_id": "1", "private_key": pem}
    return json.dumps({**account, "client_email": "mira@test.invalid", "token_uri": token_uri})


def vertex(monkeypatch: pytest.MonkeyPatch, server: MisbehavingServer) -> ChatModel:
    """A model of Vertex AI whose token and answers come from *server*."""
    url = f"http://127.0.0.1:{server.port}"
    monkeypatch.setenv("VERTEXAI_PROJECT", "museum-1")
    monkeypatch.setenv("VERTEXAI_LOCATION", "europe-west4")
    monkeypatch.setenv("VERTEXAI_CREDENTIALS", service_account(f"{url}/token"))
    return make_model("litellm:vertex_ai/gemini-2.5-flash", base_url=url, policy=RETRY_ONCE)


async def test_vertex_is_asked_with_a_token_of_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteLLM exchanges `VERTEXAI_CREDENTIALS` for a token, and puts project and location into the path."""
    answers = iter([Status(429, retry_after="0"), Reply("hello"), Status(403, f"no access with {KEY}")])
    token = Body(json.dumps({"access_token": "ya29.of-this-test", "expires_in": 3_600, "token_type": "Bearer"}))
    async with misbehaving_server(lambda sent: token if sent.path == "/token" else next(answers)) as server:
        chat = vertex(monkeypatch, server)
        reply = await chat.complete(request(thinking_tokens=1024, deadline_s=HANG_S))
        with pytest.raises(ModelRejected, match="HTTP 403") as refused:
            await chat.complete(request(deadline_s=HANG_S))
        await chat.aclose()
    assert (reply.text, reply.attempts, reply.usage.tokens_in) == ("hello", 2, 100)
    first, *asked = server.requests
    place = "/v1/projects/museum-1/locations/europe-west4/publishers/google/models/gemini-2.5-flash:generateContent"
    assert [first.path, *(sent.path for sent in asked)] == ["/token", place, place, place], "one token serves all calls"
    assert b"assertion=" in first.raw
    assert {sent.headers["authorization"] for sent in asked} == {"Bearer ya29.of-this-test"}
    assert camel(asked[0].body)["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 1024
    assert "PRIVATE KEY" not in str(refused.value)


async def test_vertex_without_a_token_is_refused_and_an_outage_of_the_token_service_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Symptom: refused credentials were reported as HTTP 500 of the model's server, and tried until the retry window
    had passed."""
    refusal = Body('{"error": "invalid_grant", "error_description": "Invalid JWT"}', status=400)
    for answer, error, says, tokens in (
        (refusal, ModelUnavailable, "no token for the credentials: .*Invalid JWT", 1),
        (Close(), ModelBusy, "Connection aborted", 2),
    ):
        async with misbehaving_server([answer] * 2) as server:
            chat = vertex(monkeypatch, server)
            with pytest.raises(error, match=says) as caught:
                await chat.complete(request(deadline_s=HANG_S))
            await chat.aclose()
        assert [sent.path for sent in server.requests] == ["/token"] * tokens
        assert "PRIVATE KEY" not in str(caught.value) and "\n" not in str(caught.value)
