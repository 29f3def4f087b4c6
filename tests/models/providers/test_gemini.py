"""Requests to Gemini as a server of its protocol receives them, by model family, and what its answers mean."""

from __future__ import annotations

import base64
import warnings
from typing import Any

import pytest
from google.genai import types

from models.base import (
    Budget,
    ChatRequest,
    Effort,
    Image,
    Message,
    ModelError,
    ModelInvalidAnswer,
    ModelRejected,
    ModelTruncated,
)
from models.providers.gemini_chat import GeminiChat
from models.providers.gemini_families import FAMILIES, NEWEST, Levels, family_of
from models.providers.gemini_finishes import FINISHES, Finish
from models.specs import parse_spec
from models.thinking import EFFORT_TOKENS
from tests.models.providers.servers import Act, Body, Received, Reply, Status, misbehaving_server
from tests.models.providers.speakers import Shopping
from tests.models.providers.test_openai_wire import FAST, PNG, Verdict, camel, request, sent

NAMES = ("gemini-2.5-flash", "gemini-3.1-pro-preview", "gemini-flash-latest", "gemini-9-radon")


async def generation(model: str, question: ChatRequest) -> Any:
    return (await sent("gemini", question, model))["generationConfig"]


@pytest.mark.parametrize(
    ("model", "tokens", "budget"),
    [
        ("gemini-2.5-flash", None, None),
        ("gemini-2.5-flash", "auto", -1),
        ("gemini-2.5-flash-lite", "auto", -1),
        ("gemini-2.5-pro", "auto", -1),
        ("gemini-2.0-flash", "auto", None),
        ("gemini-2.5-flash", 0, 0),
        ("gemini-2.5-flash", 8192, 8192),
        ("gemini-2.5-flash", 99999, 24576),
        ("gemini-2.5-flash-lite", 256, 512),
        ("gemini-2.5-flash-lite", 0, 0),
        ("gemini-2.5-pro", 0, 128),
        ("models/gemini-2.5-pro", 16384, 16384),
        ("gemini-2.0-flash", 8192, None),
        ("gemma-3-27b-it", 8192, None),
    ],
)
async def test_thinking_becomes_a_budget(model: str, tokens: Budget | None, budget: int | None) -> None:
    sent_config = await generation(model, request(thinking_tokens=tokens, max_tokens=100))
    assert sent_config.get("thinkingConfig", {}) == ({} if budget is None else {"thinkingBudget": budget})
    thinks = "2.5" in model
    room = 0 if not thinks else 16_384 if tokens in (None, "auto") else budget
    assert sent_config["maxOutputTokens"] == 100 + (room or 0)
    assert sent_config["temperature"] == 0


@pytest.mark.parametrize(
    ("model", "tokens", "level"),
    [
        ("gemini-3-flash-preview", None, None),
        ("gemini-3-flash-preview", "auto", None),
        ("gemini-3-flash-preview", 0, "MINIMAL"),
        ("gemini-3.5-flash", 256, "LOW"),
        ("gemini-3.5-flash", 8192, "MEDIUM"),
        ("gemini-3.5-flash", 16384, "HIGH"),
        ("gemini-3-pro-preview", 1024, "LOW"),
        ("gemini-3-pro-preview", 8192, "HIGH"),
        ("gemini-3.1-pro-preview", 0, "LOW"),
        ("gemini-3.1-pro-preview", 4096, "MEDIUM"),
        ("gemini-3.1-pro-preview", 16384, "HIGH"),
        ("gemini-3.8-flash", 0, "LOW"),
        ("gemini-4-hydrogen", 16384, "HIGH"),
        ("gemini-pro-latest", 0, "LOW"),
        ("gemini-flash-latest", 8192, "MEDIUM"),
        ("gemini-9-radon", 16384, "HIGH"),
    ],
)
async def test_thinking_becomes_a_level_from_gemini_3_on(model: str, tokens: Budget | None, level: str | None) -> None:
    sent_config = await generation(model, request(thinking_tokens=tokens, max_tokens=100, temperature=0.5))
    assert sent_config.get("thinkingConfig", {}) == ({} if level is None else {"thinkingLevel": level})
    assert sent_config["maxOutputTokens"] == 100 + 16_384
    assert "temperature" not in sent_config


@pytest.mark.parametrize(
    ("model", "effort", "level"),
    [
        ("gemini-3-pro", "none", "LOW"),
        ("gemini-3-flash", "minimal", "MINIMAL"),
        ("gemini-3-pro", "medium", "HIGH"),
        ("gemini-3.1-pro", "medium", "MEDIUM"),
        ("gemini-3.1-pro", "max", "HIGH"),
        ("gemini-4-hydrogen", "xhigh", "XHIGH"),
        ("gemini-2.5-pro", "high", None),
    ],
)
async def test_an_effort_is_a_level(model: str, effort: Effort, level: str | None) -> None:
    sent_config = await generation(model, request(effort=effort, thinking_tokens=EFFORT_TOKENS[effort]))
    budget = {"thinkingBudget": EFFORT_TOKENS[effort]}
    assert sent_config["thinkingConfig"] == ({"thinkingLevel": level} if level else budget)


def test_a_model_without_thoughts_ignores_thinking() -> None:
    specs = [parse_spec(f"gemini:{name}") for name in ("gemini-2.0-flash", "gemini-2.5-flash", "gemini-9-radon")]
    assert [spec.ignores_thinking(1024) for spec in specs] == [True, False, False]


@pytest.mark.parametrize(("model", "resolution"), list(zip(NAMES, [None, *["MEDIA_RESOLUTION_HIGH"] * 3], strict=True)))
async def test_pictures_are_inline_data_at_a_resolution(model: str, resolution: str | None) -> None:
    body = await sent("gemini", request(messages=(Message("user", "look", (Image(PNG, "image/jpeg"),)),)), model)
    text, image = body["contents"][0]["parts"]
    assert text == {"text": "look"}
    assert image["inlineData"]["mimeType"] == "image/jpeg"
    assert base64.urlsafe_b64decode(image["inlineData"]["data"]) == PNG
    assert body["generationConfig"].get("mediaResolution") == resolution
    assert "mediaResolution" not in await generation(model, request())


@pytest.mark.parametrize("model", NAMES)
async def test_sampling_and_schema(model: str) -> None:
    sent_config = await generation(model, request(schema=Verdict, seed=7, stop=("END",)))
    assert (sent_config["seed"], sent_config["stopSequences"]) == (7, ["END"])
    assert sent_config["responseMimeType"] == "application/json"
    assert sent_config["responseJsonSchema"]["required"] == ["success", "reason"]


async def test_what_an_unknown_family_refuses_is_left_out_from_then_on() -> None:
    def act(received: Received) -> Act:
        sent_config = camel(received.body)["generationConfig"]
        return (
            Status(400, "no levels here")
            if "thinkingConfig" in sent_config or "mediaResolution" in sent_config
            else Reply("ok")
        )

    question = request(thinking_tokens=8192, messages=(Message("user", "look", (Image(PNG),)),))
    async with misbehaving_server(act) as server:
        chat = GeminiChat("gemini-9-radon", api_key="key-of-a-test", base_url=server.gemini_url, policy=FAST)
        replies = [await chat.complete(question) for _ in range(2)]
        await chat.aclose()
    assert [reply.attempts for reply in replies] == [2, 1]
    assert camel(server.requests[-1].body)["generationConfig"]["maxOutputTokens"] > 16_384


@pytest.mark.parametrize("act", [Status(400, "too long"), Status(400, "bad key", code="API_KEY_INVALID")])
@pytest.mark.parametrize("model", NAMES)
async def test_another_refusal_of_the_request_is_final(model: str, act: Act) -> None:
    async with misbehaving_server([act] * 2) as server:
        chat = GeminiChat(model, api_key="key-of-a-test", base_url=server.gemini_url, policy=FAST)
        with pytest.raises(ModelRejected) as caught:
            await chat.complete(request())
        await chat.aclose()
    about_key = isinstance(act, Status) and act.code is not None
    assert caught.value.answered is not about_key
    assert ("check the API key" in str(caught.value)) is about_key
    assert len(server.requests) == (2 if family_of(model) is NEWEST and not about_key else 1)


@pytest.mark.parametrize(
    ("reason", "error", "requests"),
    [
        ("MAX_TOKENS", ModelTruncated, 1),
        ("RECITATION", ModelInvalidAnswer, 2),
        ("MALFORMED_FUNCTION_CALL", ModelInvalidAnswer, 2),
        ("OTHER", ModelInvalidAnswer, 2),
        ("SAFETY", ModelRejected, 1),
        ("PROHIBITED_CONTENT", ModelRejected, 1),
        ("PUP_LIMITED_DISABLED", ModelRejected, 1),
        ("A_REASON_OF_NEXT_YEAR", ModelRejected, 1),
    ],
)
async def test_finish_reasons(reason: str, error: type[ModelError], requests: int) -> None:
    with warnings.catch_warnings():
        async with misbehaving_server(lambda _: Reply("half", extra={"finishReason": reason})) as server:
            chat = GeminiChat("gemini-3-flash", api_key="key-of-a-test", base_url=server.gemini_url, policy=FAST)
            with pytest.raises(error, match=reason if error is not ModelTruncated else "max_tokens") as caught:
                await chat.complete(request())
            await chat.aclose()
    assert len(server.requests) == requests
    assert caught.value.answered is (reason != "PUP_LIMITED_DISABLED")
    assert caught.value.usage is not None and caught.value.usage.tokens_in == 100 * requests


def test_the_package_knows_the_finish_reasons_that_are_no_refusals() -> None:
    assert set(FINISHES) - {""} <= {reason.value for reason in types.FinishReason}
    assert FINISHES.get(types.FinishReason.SAFETY.value) is None
    assert FINISHES[types.FinishReason.STOP.value] is Finish.WHOLE


@pytest.mark.parametrize("reason", ["SAFETY", "BLOCKLIST", "A_REASON_OF_NEXT_YEAR"])
async def test_a_blocked_prompt_is_a_refusal(reason: str) -> None:
    body = f'{{"promptFeedback": {{"blockReason": "{reason}"}}, "usageMetadata": {{"promptTokenCount": 7}}}}'
    with warnings.catch_warnings():
        async with misbehaving_server([Body(body)]) as server:
            chat = GeminiChat("gemini-3-flash", api_key="key-of-a-test", base_url=server.gemini_url, policy=FAST)
            with pytest.raises(ModelRejected, match=reason) as caught:
                await chat.complete(request())
            await chat.aclose()
    assert caught.value.answered and caught.value.usage is not None and caught.value.usage.tokens_in == 7


@pytest.mark.parametrize("parts", ["one", "two"])
async def test_a_repair_returns_the_thought_signature(parts: str) -> None:
    mark = base64.b64encode(b"thoughts \xff").decode()
    thought, text = {"text": "hm", "thought": True}, {"text": "a lamp"}
    said = [thought, text | {"thoughtSignature": mark}]
    if parts == "two":
        said = [thought, text, {"text": "", "thoughtSignature": mark}]
    first = Reply(extra={"content": {"role": "model", "parts": said}})
    async with misbehaving_server([first, Reply('{"item": "lamp", "price": 3.5}')]) as server:
        chat = GeminiChat("gemini-3-flash", api_key="key-of-a-test", base_url=server.gemini_url, policy=FAST)
        reply = await chat.complete(request(schema=Shopping))
        await chat.aclose()
    assert reply.parsed == Shopping(item="lamp", price=3.5) and reply.signature is None
    question, answer, _ = camel(server.requests[1].body)["contents"]
    assert "thoughtSignature" not in question["parts"][0]
    assert answer["parts"][0]["text"] == "a lamp"
    assert base64.urlsafe_b64decode(answer["parts"][0]["thoughtSignature"]) == b"thoughts \xff"


def test_every_family_is_reached_by_a_name_and_its_levels_rise() -> None:
    names = (
        "gemini-1.5-pro gemini-2.5-flash-lite gemini-2.5-flash gemini-2.5-pro gemini-3-pro-preview "
        "gemini-3.1-pro-preview gemini-3.6-flash gemini-3.8-flash gemini-4-hydrogen gemini-4-argon"
    )
    assert [family_of(name) for name in names.split()] == list(FAMILIES)
    order = list(types.ThinkingLevel)
    for family in (*FAMILIES, NEWEST):
        if isinstance(family.thinking, Levels):
            ranks = [order.index(level) for level in family.thinking.levels]
            assert ranks == sorted(ranks)
