from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import transport
from models.base import ModelBusy, ModelRejected, ModelTimeout, ModelUnavailable, Usage
from models.transport import (
    Call,
    Failure,
    RetryPolicy,
    added,
    failure_of_status,
    open_call,
    parsed_json,
    quoted,
    retry_after_s,
    usable_key,
    well_formed,
)
from tests.timing import LoopClock

NOON = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 2026 13:00:10 +0100"}, 0.0 + 10.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
    ],
    ids=str,
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOON) == seconds


@given(st.text(max_size=40))
def test_retry_after_takes_any_text(text: str) -> None:
    seconds = retry_after_s({"retry-after": text}, NOON)
    assert seconds is None or seconds >= 0


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_retried_statuses(status: int) -> None:
    failure = failure_of_status(status, "busy", {"retry-after": "2"})
    assert (failure.retry, failure.retry_after_s, failure.error) == (True, 2.0, ModelBusy)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
def test_final_statuses(status: int) -> None:
    failure = failure_of_status(status, "no", {"retry-after": "2"})
    assert (failure.retry, failure.error) == (False, ModelRejected)


def test_a_web_page_is_named_and_not_quoted() -> None:
    """The answer of a server that is no model server, or of a proxy."""
    page = failure_of_status(501, "<!DOCTYPE HTML>\n<html><body>Unsupported method</body></html>", {})
    assert "a web page" in page.reason and "<" not in page.reason


def test_the_server_may_overrule() -> None:
    assert failure_of_status(500, "", {"x-should-retry": "false"}).retry is False
    assert failure_of_status(400, "", {"x-should-retry": "true"}).retry is True


def test_waits_grow_with_full_jitter_and_stay_capped() -> None:
    call = Call(100.0, RetryPolicy(base_s=1.0, cap_s=4.0), random.Random(0))
    busy = Failure(ModelBusy, "busy", retry=True)
    for retries, top_s in enumerate([1.0, 2.0, 4.0, 4.0]):
        waits = [call._delay_s(busy, retries) for _ in range(400)]
        assert 0.0 <= min(waits) < 0.1 * top_s
        assert 0.9 * top_s < max(waits) <= top_s
    asked = Failure(ModelBusy, "busy", retry=True, retry_after_s=9.0)
    assert all(9.0 <= call._delay_s(asked, 3) <= 10.0 for _ in range(100))


def test_two_workers_do_not_wait_in_step() -> None:
    busy = Failure(ModelBusy, "busy", retry=True)
    waits = [Call(9.0, RetryPolicy())._delay_s(busy, 3) for _ in range(5)]
    assert all(a != b for a, b in pairwise(waits))


async def test_one_attempt_leaves_time_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)
    monkeypatch.setattr(transport, "CLOCK", clock)
    asked: list[float] = []

    async def first_hangs() -> str:
        asked.append(call.seconds)
        if len(asked) == 1:
            await clock.pass_until()
        return "answer"

    async with open_call(100.0, RetryPolicy(base_s=0.01)) as call:
        assert await call.send(first_hangs) == "answer"
    assert 60 <= asked[1] < 100
    assert call.attempts == 2


async def test_the_deadline_ends_whatever_hangs() -> None:
    with pytest.raises(ModelTimeout, match=r"deadline of 0\.05 s") as caught:
        async with open_call(0.05, RetryPolicy()):
            await asyncio.Event().wait()
    assert caught.value.seconds >= 0.05


async def test_foreign_timeouts_pass_through() -> None:
    with pytest.raises(TimeoutError, match="theirs"):
        async with open_call(5.0, RetryPolicy()):
            raise TimeoutError("theirs")


async def test_an_error_says_what_was_spent() -> None:
    async def rejected() -> Failure:
        call.charge(Usage(tokens_in=3, cost_usd=0.5))
        return Failure(ModelRejected, "no")

    with pytest.raises(ModelRejected) as caught:
        async with open_call(5.0, RetryPolicy()) as call:
            await call.send(rejected)
    assert (caught.value.attempts, caught.value.usage) == (1, Usage(tokens_in=3, cost_usd=0.5))


def test_an_unknown_cost_makes_the_sum_unknown() -> None:
    assert added(Usage(1, 2, 3, 4, 0.5), Usage(1, 2, 3, 4, 0.25)) == Usage(2, 4, 6, 8, 0.75)
    assert added(Usage(cost_usd=0.5), Usage(cost_usd=None)).cost_usd is None


@pytest.mark.parametrize("key", ["", "  ", "sk-\nabc", "schlüssel-🗝", "sk-\x00a"])
def test_a_key_that_no_header_can_carry(key: str) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        usable_key(key)
    assert not key.strip() or key not in str(caught.value)


def test_a_pasted_key_may_end_in_a_newline() -> None:
    assert usable_key(" sk-abc\r\n") == "sk-abc"


@given(st.text(st.characters(), max_size=60))
def test_well_formed_text_can_be_stored_and_is_left_alone(text: str) -> None:
    clean = well_formed(text)
    clean.encode("utf-8")
    assert "\0" not in clean
    assert well_formed(clean) == clean
    if "\0" not in text:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            return
        assert clean == text


def test_json_with_half_a_character_has_texts_that_can_be_stored() -> None:
    assert parsed_json(r'{"half": "\ud83d!", "whole": "\ud83d\ude00"}') == {"half": "\ufffd!", "whole": "\U0001f600"}


def test_a_quoted_message_is_one_short_line_without_the_key() -> None:
    line = quoted("bad key sk-123456\n" + "x" * 1000, "sk-123456")
    assert line.startswith("bad key *** x")
    assert len(line) <= 300
    assert "\n" not in line
