"""For any behaviour of a server, a call ends with an answer or a typed error within its deadline."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from models import transport
from models.base import (
    ModelBusy,
    ModelError,
    ModelInvalidAnswer,
    ModelRejected,
    ModelTimeout,
    ModelTruncated,
    ModelUnavailable,
)
from tests.models.providers.servers import (
    Act,
    Body,
    Close,
    CutOff,
    Drip,
    Hang,
    Reply,
    Status,
    misbehaving_server,
)
from tests.models.providers.speakers import (
    CLAUDE,
    DEADLINE_S,
    GEMINI,
    KEY,
    OPENAI,
    Shopping,
    Speaker,
    ask,
    client,
    each,
    talking,
)
from tests.timing import LoopClock

SLACK_S = 20.0
"""Time of the machine beyond a deadline: real seconds, and steps of the clock."""


@dataclass(frozen=True)
class Case:
    name: str
    script: tuple[Act, ...]
    sent: int
    error: type[ModelError] | None = None
    says: str = ""
    schema: type[BaseModel] | None = None


GOOD = '{"item": "lamp", "price": 3.5}'
CASES = [
    Case("answers", (Reply("ok"),), 1),
    Case("429-then-ok", (Status(429, retry_after="0"), Reply("ok")), 2),
    Case("500-then-ok", (Status(500), Reply("ok")), 2),
    Case("503-529-then-ok", (Status(503), Status(529), Reply("ok")), 3),
    Case("closes-then-ok", (Close(), Reply("ok")), 2),
    Case("cut-off-then-ok", (CutOff(), Reply("ok")), 2),
    Case("hangs-then-ok", (Hang(), Reply("ok")), 2),
    Case("drips-then-ok", (Drip(), Reply("ok")), 2),
    Case("broken-json-then-ok", (Body('{"choices": [{"mess'), Reply("ok")), 2),
    Case("html-then-ok", (Body("<html>busy</html>", "text/html"), Reply("ok")), 2),
    Case("repaired-after-wrong-type", (Reply('{"item": "lamp", "price": "3.5"}'), Reply(GOOD)), 2, schema=Shopping),
    Case("repaired-after-prose", (Reply(f"Here: {GOOD}"), Reply(GOOD)), 2, schema=Shopping),
    Case("fenced", (Reply(f"```json\n{GOOD}\n```"),), 1, schema=Shopping),
    Case("always-429", (Status(429, "slow down"),) * 3, 3, ModelBusy, "slow down"),
    Case("always-500", (Status(500, "oh no"),) * 3, 3, ModelBusy, "oh no"),
    Case("retry-after-past-deadline", (Status(429, "wait", retry_after="3600"),), 1, ModelBusy, "pass the deadline"),
    Case("always-cut-off", (CutOff(),) * 3, 3, ModelTruncated),
    Case("always-closes", (Close(),) * 3, 3, ModelTruncated),
    Case("always-broken-json", (Body('{"choices": [{"mess'),) * 3, 3, ModelTruncated),
    Case("never-the-protocol", (Body('{"hello": []}'),) * 3, 3, ModelInvalidAnswer),
    Case("bad-gzip", (Body("{}", headers=(("Content-Encoding", "gzip"),)),) * 3, 3, ModelTruncated),
    Case("hangs", (Hang(),) * 3, 2, ModelTimeout, "deadline"),
    Case("drips", (Drip(),) * 3, 2, ModelTimeout, "deadline"),
    Case("wrong-twice", (Reply('{"item": 1}'),) * 2, 2, ModelInvalidAnswer, "price", Shopping),
    Case("length", (Reply('{"item": "la', finish="length"),), 1, ModelTruncated, "max_tokens", Shopping),
    Case("refusal", (Reply("", refusal="I will not"),), 1, ModelRejected),
    Case("content-filter", (Reply("", finish="content_filter"),), 1, ModelRejected),
    Case("aborted-then-ok", (Reply("half an ans", finish="abort"), Reply("ok")), 2),
    Case("empty", (Reply(""),), 1, ModelInvalidAnswer, "empty"),
    Case("401", (Status(401, f"wrong key {KEY}"),), 1, ModelRejected, "check the API key"),
    Case("404", (Status(404, "no such model"),), 1, ModelRejected, "no such model"),
    Case("400", (Status(400, "nonsense"),), 1, ModelRejected, "nonsense"),
    Case("redirect", (Status(307, headers=(("Location", "http://127.0.0.1:9/"),)),), 1, ModelRejected, "redirects"),
]


@pytest.fixture(scope="module", autouse=True)
def libraries() -> None:
    """Imports the vendors' libraries first, which takes seconds on a loaded machine."""
    from importlib.util import find_spec

    import google.genai
    import openai

    assert google.genai and openai
    if find_spec("litellm"):
        from models.providers.litellm_setup import loaded

        loaded()


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> LoopClock:
    """The clock of the event loop and of retries."""
    made = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", made.now)
    monkeypatch.setattr(transport, "CLOCK", made)
    return made


@each
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_call_ends_with_a_typed_error_in_time(speaker: Speaker, case: Case, clock: LoopClock) -> None:
    async with talking(speaker, list(case.script), clock) as (model, server):
        began = clock.now()
        if case.error is None:
            reply = await model.complete(ask(schema=case.schema))
            assert reply.attempts == case.sent
            assert reply.text == "ok" or reply.parsed == Shopping(item="lamp", price=3.5)
        else:
            with pytest.raises(ModelError) as caught:
                await model.complete(ask(schema=case.schema))
            assert type(caught.value) is case.error
            assert case.says in str(caught.value)
            assert KEY not in "".join(traceback.format_exception(caught.value))
            assert "\n" not in str(caught.value)
            assert caught.value.attempts == case.sent
        assert clock.now() - began < DEADLINE_S + SLACK_S
        assert case.error is not ModelTimeout or clock.now() - began >= DEADLINE_S
        assert len(server.requests) == case.sent


@each
async def test_a_closed_port_is_unavailable(speaker: Speaker) -> None:
    async with misbehaving_server([]) as gone:
        pass
    model = client(speaker, gone)
    with pytest.raises(ModelUnavailable, match="cannot reach"):
        await model.complete(ask())
    await model.aclose()


@each
async def test_retry_after_is_waited_for(speaker: Speaker, clock: LoopClock) -> None:
    async with talking(speaker, [Status(429, retry_after="40"), Reply()], clock) as (model, server):
        await model.complete(ask())
    first, second = server.requests
    assert second.at - first.at >= 40


async def test_geminis_retry_info_is_waited_for() -> None:
    info = '{"error": {"code": 429, "message": "quota", "details": [{"@type": "RetryInfo", "retryDelay": "3600s"}]}}'
    async with talking(GEMINI, [Body(info, status=429), Reply()]) as (model, server):
        with pytest.raises(ModelBusy, match="pass the deadline"):
            await model.complete(ask())
    assert len(server.requests) == 1


async def test_a_refusal_of_claude_says_why() -> None:
    async with talking(CLAUDE, [Reply("half of it", refusal="it may harm")]) as (model, _):
        with pytest.raises(ModelRejected, match="it may harm") as caught:
            await model.complete(ask())
    assert caught.value.answered, "other requests may succeed"
    assert caught.value.usage is not None and caught.value.usage.tokens_out == 10


async def test_an_account_without_money_is_no_answer_to_this_request() -> None:
    async with talking(CLAUDE, [Status(400, "no credit", code="billing_error")]) as (model, _):
        with pytest.raises(ModelRejected, match="no credit") as caught:
            await model.complete(ask())
    assert not caught.value.answered


async def test_a_spent_quota_is_not_retried() -> None:
    async with talking(OPENAI, [Status(429, "pay first", code="insufficient_quota")]) as (model, server):
        with pytest.raises(ModelRejected, match="pay first"):
            await model.complete(ask())
    assert len(server.requests) == 1


@each
async def test_the_deadline_covers_the_repair(speaker: Speaker, clock: LoopClock) -> None:
    async with talking(speaker, [Reply("not json"), Hang(), Hang()], clock) as (model, server):
        began = clock.now()
        with pytest.raises(ModelTimeout):
            await model.complete(ask(schema=Shopping))
        assert DEADLINE_S <= clock.now() - began < DEADLINE_S + SLACK_S
    assert len(server.requests) == 3
