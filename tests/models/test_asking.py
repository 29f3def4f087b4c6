"""Unparsable and truncated answers of a small model are sampled again, up to the limit."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from models import transport
from models.asking import LATER_TEMPERATURE, TEXT_TRIES, ask_text, calls_end_at, complete, complete_or_empty
from models.base import (
    ChatReply,
    ChatRequest,
    Message,
    ModelInvalidAnswer,
    ModelOutOfTime,
    ModelTimeout,
    ModelTruncated,
    SampledTokens,
    Usage,
)
from models.providers.openai_chat import OpenAIChat
from models.providers.scripted_model import ScriptedModel
from models.transport import RetryPolicy
from tests.models.providers.servers import Hang, misbehaving_server
from tests.timing import HANG_S, LoopClock

REQUEST = ChatRequest(messages=(Message("user", "Check: the door is open"),), max_tokens=8, deadline_s=9.0)
USAGE = Usage(5, 0, 0, 8, 0.0)


def number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ModelInvalidAnswer(f"no number: {text!r}") from None


class Small:
    """Returns its answers in order: a text; None, a truncated answer; 0, a broken connection."""

    spec = "small"

    def __init__(self, *answers: str | int | None) -> None:
        self.requests: list[ChatRequest] = []
        self._answers = list(answers)

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            return ChatReply(answer, USAGE, self.spec, 0.5)
        error = ModelTruncated("the answer was cut at 8 tokens")
        error.usage, error.seconds = (USAGE, 0.5) if answer is None else (None, 0.0)
        raise error

    async def aclose(self) -> None:
        pass


async def test_the_tokens_of_a_truncated_answer_are_kept() -> None:
    """Symptom: M-GRPO never lowered the probability of answers that were cut, so that a policy came to give more."""

    class Cut(Small):
        async def complete(self, request: ChatRequest) -> ChatReply:
            try:
                return await super().complete(request)
            except ModelTruncated as error:
                error.sampled = SampledTokens((1, 2), (3, 4), (-0.5, -0.25))
                raise

    reply = await complete_or_empty(Cut(None), REQUEST)
    assert (reply.text, reply.usage) == ("", USAGE)
    assert (reply.prompt_token_ids, reply.completion_token_ids, reply.logprobs) == ((1, 2), (3, 4), (-0.5, -0.25))
    assert (await complete_or_empty(Small(None), REQUEST)).completion_token_ids is None


async def test_a_parsable_answer_takes_one_call() -> None:
    model = Small("7")
    assert (await ask_text(model, REQUEST, number)).answer == 7
    assert [request.temperature for request in model.requests] == [0.0]


async def test_other_answers_are_sampled_again_with_new_seeds() -> None:
    model = Small("hm", None, "7")
    asked = await ask_text(model, REQUEST, number)
    assert asked.answer == 7
    assert [request.temperature for request in model.requests] == [0.0, LATER_TEMPERATURE, LATER_TEMPERATURE]
    assert model.requests[1].seed != model.requests[2].seed
    assert (asked.reply.usage.tokens_in, asked.reply.seconds, asked.reply.attempts) == (15, 1.5, 3), "all are paid for"
    assert model.requests[2].deadline_s == 8.0, "the deadline is that of all"


@pytest.mark.parametrize("answers", [("a", "b", "c"), ("a", "b", None)], ids=["unreadable", "endless"])
async def test_the_last_unparsable_answer_is_an_error(answers: tuple[str | None, ...]) -> None:
    model = Small(*answers, "7")
    with pytest.raises((ModelInvalidAnswer, ModelTruncated)):
        await ask_text(model, REQUEST, number)
    assert len(model.requests) == TEXT_TRIES


async def test_a_broken_connection_is_not_retried() -> None:
    model = Small(0, "7")
    with pytest.raises(ModelTruncated):
        await ask_text(model, REQUEST, number)
    assert len(model.requests) == 1


async def slow(request: ChatRequest) -> str:
    await asyncio.Event().wait()
    return "7"


async def test_a_call_ends_with_the_callers_time() -> None:
    model, begun = ScriptedModel(slow), time.monotonic()
    with calls_end_at(begun + 2.0), pytest.raises(ModelOutOfTime) as ended:
        await complete(model, REQUEST)
    assert time.monotonic() - begun >= 2.0 and ended.value.attempts == 1 and ended.value.seconds > 0.1
    with calls_end_at(begun), pytest.raises(ModelOutOfTime) as ended:
        await complete(model, REQUEST)
    assert len(model.requests) == 1 and ended.value.attempts == 0, "nothing is sent where nothing is left"


@pytest.mark.parametrize("window_s", [0.0, 60.0])
async def test_a_hanging_server_is_out_of_time_only_where_the_time_is_over(
    window_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Symptom: with `--retry-window 0`, 60 % of an episode's last seconds counted as all of them."""
    clock = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)
    monkeypatch.setattr(transport, "CLOCK", clock)
    async with misbehaving_server([Hang()] * 9, clock) as server:
        model = OpenAIChat("m", base_url=server.openai_url, policy=RetryPolicy(window_s=window_s))
        with calls_end_at(time.monotonic() + HANG_S), pytest.raises(ModelTimeout) as ended:
            await complete(model, replace(REQUEST, deadline_s=2 * HANG_S))
        await model.aclose()
    if window_s:
        assert isinstance(ended.value, ModelOutOfTime) and len(server.requests) > 1
    else:
        assert type(ended.value) is ModelTimeout and ended.value.early and len(server.requests) == 1
        assert "the retry window of 0 s is over" in str(ended.value)


async def test_its_own_deadline_raises_a_model_timeout() -> None:
    model = ScriptedModel(slow)
    with calls_end_at(time.monotonic() + HANG_S), pytest.raises(ModelTimeout) as ended:
        await complete(model, ChatRequest(messages=REQUEST.messages, deadline_s=0.2))
    assert not isinstance(ended.value, ModelOutOfTime)
    assert (await complete(ScriptedModel(["7"]), REQUEST)).text == "7"
