"""The providers that the shared tables of misbehaviour are run for.

A new provider gets all of them by one row in :data:`SPEAKERS` (and a protocol in :mod:`tests.models.providers.servers`,
if its server speaks another one).

    @each
    async def test_it_answers(speaker: Speaker) -> None:
        async with talking(speaker, [Reply("hello")]) as (model, server):
            ...
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import pytest
from pydantic import BaseModel

from models.base import ChatModel, ChatRequest, Message
from models.providers.anthropic_chat import AnthropicChat
from models.providers.gemini_chat import GeminiChat
from models.providers.openai_chat import OpenAIChat
from models.providers.openai_dialect import Dialect
from models.specs import make_model
from models.transport import RetryPolicy
from tests.models.providers.servers import MisbehavingServer, Protocol, Script, misbehaving_server
from tests.timing import LoopClock

KEY = "sk-secret-key-of-this-test"
FAST = RetryPolicy(max_attempts=3, base_s=0.01, cap_s=0.02)
DEADLINE_S = 100.0
"""Of a call, by a clock that is advanced while the server hangs."""


@dataclass(frozen=True)
class Speaker:
    """A provider, or one form of its requests."""

    name: str
    protocol: Protocol
    """What the server speaks to it."""
    make: Callable[[MisbehavingServer, RetryPolicy], ChatModel]
    package: str | None = None
    """Its tests are skipped where this one is not installed."""


class Shopping(BaseModel):
    item: str
    price: float


def _openai(server: MisbehavingServer, policy: RetryPolicy) -> ChatModel:
    return OpenAIChat("scripted-model", api_key=KEY, base_url=server.openai_url, policy=policy)


def _thinking_openai(server: MisbehavingServer, policy: RetryPolicy) -> ChatModel:
    dialect = Dialect.of_model("gpt-5", hosted=True)
    return OpenAIChat("gpt-5", api_key=KEY, base_url=server.openai_url, policy=policy, dialect=dialect)


def _vllm(server: MisbehavingServer, policy: RetryPolicy) -> ChatModel:
    return make_model(f"vllm:{server.openai_url}#scripted-model", policy=policy, environ={"VLLM_API_KEY": KEY})


def _anthropic(server: MisbehavingServer, policy: RetryPolicy) -> ChatModel:
    return AnthropicChat("claude-sonnet-4-5", api_key=KEY, base_url=server.anthropic_url, policy=policy)


def _gemini(model: str) -> Callable[[MisbehavingServer, RetryPolicy], ChatModel]:
    return lambda server, policy: GeminiChat(model, api_key=KEY, base_url=server.gemini_url, policy=policy)


def _litellm(provider: str, model: str, path: str) -> Callable[[MisbehavingServer, RetryPolicy], ChatModel]:
    def make(server: MisbehavingServer, policy: RetryPolicy) -> ChatModel:
        from models.providers.litellm_chat import LiteLLMChat

        url = f"http://127.0.0.1:{server.port}{path}"
        return LiteLLMChat(provider, model, api_key=KEY, base_url=url, policy=policy)

    return make


SPEAKERS: Final = (
    Speaker("openai", "openai", _openai),
    Speaker("openai-thinking", "openai", _thinking_openai),
    Speaker("vllm", "openai", _vllm),
    Speaker("anthropic", "anthropic", _anthropic),
    Speaker("gemini-2.5", "gemini", _gemini("gemini-2.5-flash")),
    Speaker("gemini-3", "gemini", _gemini("gemini-3.1-pro-preview")),
    Speaker("litellm-openai", "openai", _litellm("openai", "scripted-model", "/v1"), "litellm"),
    Speaker("litellm-mistral", "openai", _litellm("mistral", "mistral-large-latest", "/v1"), "litellm"),
    Speaker("litellm-gemini", "gemini", _litellm("gemini", "gemini-2.5-flash", "/v1beta"), "litellm"),
)
each = pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.name)
OPENAI, CLAUDE, GEMINI = SPEAKERS[0], SPEAKERS[3], SPEAKERS[4]


def client(speaker: Speaker, server: MisbehavingServer, policy: RetryPolicy = FAST) -> ChatModel:
    if speaker.package is not None:
        pytest.importorskip(speaker.package)
    return speaker.make(server, policy)


@asynccontextmanager
async def talking(
    speaker: Speaker, script: Script, clock: LoopClock | None = None
) -> AsyncGenerator[tuple[ChatModel, MisbehavingServer]]:
    async with misbehaving_server(script, clock) as server:
        model = client(speaker, server)
        try:
            yield model, server
        finally:
            await model.aclose()


def ask(deadline_s: float = DEADLINE_S, schema: type[BaseModel] | None = None) -> ChatRequest:
    return ChatRequest((Message("user", "what is it?"),), schema=schema, deadline_s=deadline_s)
