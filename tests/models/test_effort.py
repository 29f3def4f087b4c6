"""An effort is sent in its own word, by the role that has it, and never left out silently."""

from __future__ import annotations

from typing import get_args

import pytest

from models.base import ChatRequest, Effort, Message, ModelRejected
from models.effort import ModelWithEffort, with_effort
from models.providers.openai_chat import OpenAIChat
from models.providers.openai_dialect import Dialect
from models.thinking import (
    EFFORT_TOKENS,
    STATIC_BUDGETS,
    asks_to_think,
    budget_in_tokens,
    effort_of,
    thinks,
    validate_thinking,
)
from models.transport import RetryPolicy
from tests.models.providers.servers import MisbehavingServer, Reply, Status, misbehaving_server

REFUSED = Status(400, "'reasoning_effort' does not support 'max'", param="reasoning_effort")


def client(server: MisbehavingServer, model: str = "some-model") -> OpenAIChat:
    return OpenAIChat(model, base_url=server.openai_url, policy=RetryPolicy(max_attempts=1))


def question(**fields: object) -> ChatRequest:
    return ChatRequest((Message("user", "now"),), max_tokens=100, **fields)  # type: ignore[arg-type]


async def test_roles_share_a_model_and_have_their_own_effort() -> None:
    async with misbehaving_server([Reply("a"), Reply("b"), Reply("c")]) as server:
        shared = client(server)
        for model in (with_effort(shared, "xhigh"), with_effort(shared, 1024), with_effort(shared, "none")):
            await model.complete(question())
        await shared.aclose()
    bodies = [received.body for received in server.requests]
    assert [body.get("reasoning_effort") for body in bodies] == ["xhigh", None, "none"]
    assert [body["max_tokens"] for body in bodies] == [100 + 2 * 16_384, 100, 100 + 1_024]


async def test_a_refused_effort_is_an_error_and_not_left_out() -> None:
    async with misbehaving_server([REFUSED, Reply("x")]) as server:
        model = client(server)
        with pytest.raises(ModelRejected, match="does not support 'max'"):
            await with_effort(model, "max").complete(question(thinking_tokens=16_384))
        await model.aclose()
    assert len(server.requests) == 1


async def test_an_effort_is_sent_after_a_server_refused_that_of_a_budget() -> None:
    async with misbehaving_server([REFUSED, Reply("x"), Reply("y")]) as server:
        model = client(server, "gpt-5")
        await model.complete(question(thinking_tokens=16_384))
        await with_effort(model, "low").complete(question())
        await model.aclose()
    assert [received.body.get("reasoning_effort") for received in server.requests] == ["high", None, "low"]


def test_a_model_with_an_effort_thinks_whatever_its_name_says() -> None:
    model = OpenAIChat("m", base_url="http://127.0.0.1:9/v1")
    assert [thinks(with_effort(model, thinking), None) for thinking in ("low", "none", "auto", None)] == [
        True,
        False,
        False,
        False,
    ]
    assert with_effort(model, 1024) is model and isinstance(with_effort(model, "low"), ModelWithEffort)


def test_thoughts_are_not_limited_by_a_grammar() -> None:
    dialect = Dialect.of_model("m", hosted=False)
    assert "grammar" in dialect.parameters(question(grammar="root ::= x", effort="none"))
    assert "grammar" not in dialect.parameters(question(grammar="root ::= x", effort="low"))


def test_every_effort_has_a_static_budget() -> None:
    assert set(EFFORT_TOKENS) == set(get_args(Effort)) and set(EFFORT_TOKENS.values()) <= set(STATIC_BUDGETS)
    assert [validate_thinking(word) for word in ("high", "auto", "1024", 0)] == ["high", "auto", 1024, 0]
    assert [budget_in_tokens(thinking) for thinking in ("high", "auto", 1024)] == [16_384, "auto", 1024]
    assert [effort_of(thinking) for thinking in ("high", "auto", 1024, None)] == ["high", None, None, None]
    assert [asks_to_think(thinking) for thinking in ("low", 256, "none", 0, "auto", None)] == [True, True, *[False] * 4]
    with pytest.raises(ValueError, match="or an effort: none, minimal, low"):
        validate_thinking("lots")
