"""The Messages API: requests as a server receives them, by model, and what a refusal of a parameter changes."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from models.base import Budget, ChatRequest, Image, Message, ModelUnavailable, Usage
from models.prices import price_table
from models.providers.anthropic_chat import AnthropicChat
from models.providers.anthropic_dialect import version_of
from models.specs import make_model, price_known, statuses
from models.thinking import has_dynamic_mode, thinks
from models.transport import RetryPolicy
from tests.models.providers.servers import Act, Body, Received, Reply, Status, misbehaving_server

FAST = RetryPolicy(max_attempts=2, base_s=0.01, cap_s=0.01)


class Verdict(BaseModel):
    success: Literal["yes", "no"]
    reason: str = ""


class Counts(BaseModel):
    of: dict[str, int]


GOOD = '{"success": "yes", "reason": "seen"}'


def request(**fields: Any) -> ChatRequest:
    messages = (Message("system", "the rules"), Message("user", "now"))
    return replace(ChatRequest(messages, deadline_s=5.0, max_tokens=100), **fields)


async def sent(question: ChatRequest, model: str, reply: Act = Reply(GOOD)) -> Any:  # noqa: B008 - frozen
    async with misbehaving_server([reply]) as server:
        chat = AnthropicChat(model, base_url=server.anthropic_url, policy=FAST)
        await chat.complete(question)
        await chat.aclose()
    return server.requests[0].body


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("claude-3-7-sonnet-20250219", (3, 7)),
        ("claude-sonnet-4-20250514", (4, 0)),
        ("claude-haiku-4-5-20251001", (4, 5)),
        ("claude-opus-5-5", (5, 5)),
        ("claude-mythos-preview", (5, 0)),
        ("my-model", None),
    ],
)
def test_version_of_a_name(model: str, version: tuple[int, int] | None) -> None:
    assert version_of(model) == version


@pytest.mark.parametrize(
    ("model", "tokens", "thinking", "effort", "limit"),
    [
        ("claude-3-5-haiku-20241022", 8192, None, None, 100),
        ("claude-sonnet-4-5", None, None, None, 100),
        ("claude-sonnet-4-5", 0, None, None, 100),
        ("claude-sonnet-4-5", 256, {"type": "enabled", "budget_tokens": 1024}, None, 1124),
        ("claude-sonnet-4-5", "auto", {"type": "enabled", "budget_tokens": 8192}, None, 8292),
        ("claude-opus-4-6", None, None, None, 100),
        ("claude-opus-4-6", "auto", {"type": "adaptive"}, None, 16_484),
        ("claude-opus-4-8", 0, {"type": "disabled"}, None, 100),
        ("claude-sonnet-5", None, None, None, 16_484),
        ("claude-sonnet-5", 1024, {"type": "adaptive"}, "low", 4_196),
        ("claude-sonnet-5", 8192, {"type": "adaptive"}, "medium", 16_484),
        ("claude-sonnet-5", 16384, {"type": "adaptive"}, "high", 32_868),
        ("claude-opus-5-5", 0, {"type": "adaptive"}, "low", 4_196),
        ("claude-fable-5-1", 0, {"type": "adaptive"}, "low", 4_196),
        ("other/model", None, None, None, 100),
    ],
)
async def test_thinking_by_model(
    model: str, tokens: Budget | None, thinking: dict[str, Any] | None, effort: str | None, limit: int
) -> None:
    body = await sent(request(thinking_tokens=tokens), model)
    assert body.get("thinking") == thinking
    assert body.get("output_config", {}).get("effort") == effort
    assert body["max_tokens"] == limit
    assert "temperature" not in body or thinking is None


@pytest.mark.parametrize(
    ("model", "dynamic", "by_default", "at_none"),
    [
        ("claude-3-5-haiku-20241022", False, False, False),
        ("claude-sonnet-4-5", False, False, False),
        ("claude-opus-4-6", True, False, False),
        ("claude-sonnet-5", True, True, False),
        ("claude-opus-5-5", True, True, True),
    ],
)
async def test_which_models_think(model: str, dynamic: bool, by_default: bool, at_none: bool) -> None:
    chat = AnthropicChat(model, api_key="key-of-a-test")
    assert (has_dynamic_mode(chat), thinks(chat, None), thinks(chat, 0)) == (dynamic, by_default, at_none)
    await chat.aclose()


async def test_temperature_goes_to_models_that_take_one() -> None:
    assert (await sent(request(temperature=1.5), "claude-sonnet-4-5"))["temperature"] == 1.0
    assert "temperature" not in await sent(request(temperature=0.5), "claude-opus-4-7")
    assert "seed" not in await sent(request(seed=7), "claude-sonnet-4-5")


async def test_a_picture_follows_its_text_and_the_static_part_ends_with_a_cache_mark() -> None:
    messages = (Message("system", "the rules"), Message("user", "look", (Image(b"jpeg", "image/jpeg"),)))
    body = await sent(request(messages=messages), "claude-sonnet-5-5")
    assert body["system"] == [{"type": "text", "text": "the rules", "cache_control": {"type": "ephemeral"}}]
    text, image = body["messages"][0]["content"]
    assert text == {"type": "text", "text": "look"}
    assert image["source"]["media_type"] == "image/jpeg"
    assert base64.b64decode(image["source"]["data"]) == b"jpeg"
    assert "cache_control" not in json.dumps(body["messages"])


async def test_a_schema_is_the_format_of_the_answer() -> None:
    body = await sent(request(schema=Verdict, stop=("END", "\n")), "claude-sonnet-5-5")
    wanted = body["output_config"]["format"]
    assert wanted["type"] == "json_schema" and wanted["schema"]["additionalProperties"] is False
    assert body["stop_sequences"] == ["END"], "a stop of white space is refused"
    assert "tools" not in body


def tool_call(value: Any) -> Body:
    call = {"type": "tool_use", "id": "toolu_1", "name": "answer", "input": value}
    message = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "So:"}, call]}
    usage = {"input_tokens": 5, "output_tokens": 3}
    return Body(json.dumps({**message, "stop_reason": "tool_use", "usage": usage}))


@pytest.mark.parametrize(
    ("model", "thinking", "choice"),
    [("claude-3-7-sonnet-20250219", None, "tool"), ("claude-3-7-sonnet-20250219", 1024, "auto")],
)
async def test_older_models_answer_through_a_tool(model: str, thinking: int | None, choice: str) -> None:
    body = await sent(request(schema=Verdict, thinking_tokens=thinking), model, tool_call({"success": "no"}))
    assert body["tool_choice"]["type"] == choice, "a call cannot be forced while the model thinks"
    assert body["tools"][0]["input_schema"]["required"] == ["success", "reason"]


async def test_the_input_of_the_tool_is_the_answer() -> None:
    async with misbehaving_server(
        [tool_call({"of": {"apples": 3}}), tool_call({"of": 1}), tool_call({"of": {}})]
    ) as server:
        chat = AnthropicChat("claude-sonnet-5-5", base_url=server.anthropic_url, policy=FAST)
        assert (await chat.complete(request(schema=Counts))).parsed == Counts(of={"apples": 3})
        assert (await chat.complete(request(schema=Counts))).parsed == Counts(of={}), "repaired"
        await chat.aclose()
    assert "output_config" not in server.requests[0].body, "a free-form mapping is no closed format"


REFUSALS: list[tuple[str, str, str]] = [
    ("temperature", "`temperature` is deprecated for this model.", "other"),
    ("output_config", "output_config.format: Extra inputs are not permitted", "other"),
    ("tool_choice", 'tool_choice: "tool" is not supported for this model', "claude-3-7-sonnet-20250219"),
]


@pytest.mark.parametrize(("refused", "message", "model"), REFUSALS, ids=[row[0] for row in REFUSALS])
async def test_a_refused_parameter_is_left_out_once_and_remembered(refused: str, message: str, model: str) -> None:
    def act(received: Received) -> Act:
        return Status(400, message, code="invalid_request_error") if refused in received.body else Reply(GOOD)

    async with misbehaving_server(act) as server:
        chat = AnthropicChat(model, base_url=server.anthropic_url, policy=FAST)
        for _ in range(2):
            assert (await chat.complete(request(schema=Verdict))).parsed == Verdict(success="yes", reason="seen")
        await chat.aclose()
    assert [refused in received.body for received in server.requests] == [True, False, False]


async def test_thinking_takes_the_form_that_the_server_knows() -> None:
    def act(received: Received) -> Act:
        form = received.body.get("thinking", {}).get("type")
        if form in ("enabled", "disabled"):
            return Status(400, f'"thinking.type.{form}" is not supported for this model.')
        return Reply("ok")

    async with misbehaving_server(act) as server:
        chat = AnthropicChat("a-new-model", base_url=server.anthropic_url, policy=FAST)
        await chat.complete(request(thinking_tokens=4096))
        await chat.complete(request(thinking_tokens=0))
        await chat.complete(request(thinking_tokens=0))
        await chat.aclose()
    forms = [received.body["thinking"]["type"] for received in server.requests]
    assert forms == ["enabled", "adaptive", "disabled", "adaptive", "adaptive"]


async def test_refusals_of_everything_end() -> None:
    words = "not supported: temperature thinking disabled adaptive budget_tokens effort output_config tool"
    async with misbehaving_server(lambda _: Status(400, words)) as server:
        chat = AnthropicChat("claude-opus-4-6", base_url=server.anthropic_url, policy=FAST)
        with pytest.raises(Exception, match="not supported"):
            await chat.complete(request(schema=Verdict, thinking_tokens=0))
        await chat.aclose()
    assert len(server.requests) <= 9


async def test_usage_counts_what_was_read_from_and_written_to_the_cache() -> None:
    usage = {
        "input_tokens": 100,
        "cache_read_input_tokens": 400,
        "cache_creation_input_tokens": 500,
        "output_tokens": 70,
    }
    reply = Reply("ok", extra_top={"usage": {**usage, "output_tokens_details": {"thinking_tokens": 20}}})
    async with misbehaving_server([reply]) as server:
        chat = AnthropicChat("claude-opus-5", base_url=server.anthropic_url, policy=FAST)
        spent = (await chat.complete(request())).usage
        await chat.aclose()
    assert spent == Usage(tokens_in=1000, tokens_cached=400, tokens_thinking=20, tokens_out=50, cost_usd=None)
    cost = price_table().cost_usd("claude-opus-5", spent, written=500)
    assert cost == pytest.approx((100 * 5 + 500 * 6.25 + 400 * 0.5 + 70 * 25) / 1e6)


@pytest.mark.parametrize("kind", ["anthropic", "anthropic-browser", "anthropic-computer"])
async def test_a_key_or_an_address_is_needed(kind: str) -> None:
    spec = f"{kind}:claude-sonnet-5-5"
    with pytest.raises(ModelUnavailable, match=r"needs a key: set ANTHROPIC_API_KEY") as caught:
        make_model(spec, environ={})
    assert "\n" not in str(caught.value)
    for options in ({"environ": {"ANTHROPIC_API_KEY": "k-1234"}}, {"environ": {}, "base_url": "http://127.0.0.1:1"}):
        model = make_model(spec, **options)  # pyright: ignore[reportArgumentType]
        assert model.spec == spec
        await model.aclose()
    assert price_known(spec, environ={}) and not price_known(spec, base_url="http://127.0.0.1:1", environ={})
    row = next(row for row in statuses({}) if row.spec.startswith(f"{kind}:"))
    assert not row.usable and "ANTHROPIC_API_KEY" in row.detail


@pytest.mark.parametrize("given", [True, False])
async def test_a_given_base_url_takes_precedence_over_the_variable(given: bool) -> None:
    async with misbehaving_server([Reply()]) as server:
        address = f"{server.anthropic_url}/v1"
        environ = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1" if given else address}
        chat = make_model("anthropic:m", base_url=address if given else None, environ=environ)
        await chat.complete(request())
        await chat.aclose()
    assert server.requests[0].path == "/v1/messages"
    assert "x-api-key" not in server.requests[0].headers


def test_a_price_is_known_at_the_server_that_is_called() -> None:
    hosted, other = "https://api.anthropic.com", "http://127.0.0.1:1"
    for base_url, variable, known in ((other, hosted, False), (hosted, other, True), (None, other, False)):
        environ = {"ANTHROPIC_BASE_URL": variable}
        assert price_known("anthropic:claude-sonnet-5-5", base_url=base_url, environ=environ) is known
