"""Requests to an unavailable server are retried for the retry window, for every kind of outage.

Ports are really closed and opened again; only waiting is simulated (:mod:`tests.models.providers.outages`).
"""

from __future__ import annotations

import pytest

from models import transport
from models.base import ModelBusy, ModelError, ModelInvalidAnswer, ModelTruncated, ModelUnavailable
from models.transport import Call, Failure, RetryPolicy, Waiting, open_call, wait_listener
from tests.models.providers.outages import OutageClock
from tests.models.providers.servers import Act, Body, Close, CutOff, GoAway, Reply, Status, misbehaving_server
from tests.models.providers.speakers import OPENAI, Shopping, Speaker, ask, client, each

DEFAULT = RetryPolicy()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> OutageClock:
    made = OutageClock()
    monkeypatch.setattr(transport, "CLOCK", made)
    return made


@each
@pytest.mark.parametrize("seconds", [5, 30, 60, 90])
async def test_a_closed_port_that_opens_again_loses_no_call(
    speaker: Speaker, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = OutageClock(seconds)
    monkeypatch.setattr(transport, "CLOCK", clock)
    async with misbehaving_server([GoAway(), Reply("back")]) as server:
        clock.watch(server)
        model = client(speaker, server, DEFAULT)
        reply = await model.complete(ask(120.0))
        await model.aclose()
    assert reply.text == "back"
    assert clock.away_s >= seconds  # by its clock, in which real time counts: on a loaded machine it sleeps less
    assert clock.slept <= seconds + DEFAULT.cap_s
    assert reply.attempts == len(clock.waits) + 1


AWAY: list[tuple[str, Act, type[ModelError]]] = [
    ("accepts and closes", Close(), ModelTruncated),
    ("cut off", CutOff(), ModelTruncated),
    ("429 without Retry-After", Status(429), ModelBusy),
    ("503", Status(503), ModelBusy),
    ("a gateway's page", Body("<html>Bad gateway</html>", "text/html"), ModelTruncated),
]


@each
@pytest.mark.parametrize(("act", "error"), [case[1:] for case in AWAY], ids=[case[0] for case in AWAY])
async def test_every_kind_of_outage_is_retried_until_the_window_ends(
    speaker: Speaker, act: Act, error: type[ModelError], clock: OutageClock
) -> None:
    async with misbehaving_server(lambda _: act) as server:
        model = client(speaker, server, DEFAULT)
        with pytest.raises(error, match="the retry window of 100 s is over") as caught:
            await model.complete(ask(120.0))
        await model.aclose()
    assert caught.value.seconds >= 100 and clock.slept < 100
    assert caught.value.attempts == len(server.requests) > 10
    assert not caught.value.answered


@each
async def test_a_closed_port_for_the_whole_window_is_unavailable(speaker: Speaker, clock: OutageClock) -> None:
    async with misbehaving_server([]) as gone:
        pass
    model = client(speaker, gone, RetryPolicy(window_s=60))
    with pytest.raises(ModelUnavailable, match=r"cannot reach .*the retry window of 60 s is over") as caught:
        await model.complete(ask(120.0))
    await model.aclose()
    assert caught.value.seconds >= 60 and clock.slept < 60


@each
async def test_the_deadline_ends_the_window(speaker: Speaker, clock: OutageClock) -> None:
    async with misbehaving_server([]) as gone:
        pass
    model = client(speaker, gone, RetryPolicy(window_s=600))
    with pytest.raises(ModelUnavailable, match="would pass the deadline of 60 s"):
        await model.complete(ask(60.0))
    await model.aclose()
    assert 50 - 1 < clock.slept < 60


@each
async def test_without_a_window_a_request_is_sent_once(speaker: Speaker, clock: OutageClock) -> None:
    async with misbehaving_server([Status(503)]) as server:
        model = client(speaker, server, RetryPolicy(window_s=0))
        with pytest.raises(ModelBusy):
            await model.complete(ask(120.0))
        await model.aclose()
    assert (len(server.requests), clock.waits) == (1, [])


async def test_a_wait_that_the_server_asked_for_may_end_after_the_window(clock: OutageClock) -> None:
    async with misbehaving_server([Status(429, retry_after="80"), Reply("well")]) as server:
        model = client(OPENAI, server, RetryPolicy(window_s=60))
        assert (await model.complete(ask(120.0))).text == "well"
        await model.aclose()
    assert 80 <= clock.slept <= 81


async def test_unusable_answers_are_retried_a_limited_number_of_times(clock: OutageClock) -> None:
    async with misbehaving_server(lambda _: Reply("half an ans", finish="abort")) as server:
        model = client(OPENAI, server, DEFAULT)
        with pytest.raises(ModelTruncated, match="5 answers were unusable") as caught:
            await model.complete(ask(120.0))
        await model.aclose()
    assert len(server.requests) == 5 and clock.slept < 20
    assert caught.value.answered


ANSWERED: list[tuple[str, Act, bool]] = [
    ("length", Reply("cut", finish="length"), True),
    ("empty", Reply(""), True),
    ("refusal", Reply("", refusal="no"), True),
    ("content filter", Reply("", finish="content_filter"), True),
    ("too long a request", Status(400, "the prompt is too long"), True),
    ("wrong key", Status(401, "wrong key"), False),
    ("no such model", Status(404), False),
]


@each
@pytest.mark.parametrize(("act", "answered"), [case[1:] for case in ANSWERED], ids=[case[0] for case in ANSWERED])
async def test_an_error_says_whether_the_model_answered(
    speaker: Speaker, act: Act, answered: bool, clock: OutageClock
) -> None:
    async with misbehaving_server([act]) as server:
        model = client(speaker, server, DEFAULT)
        with pytest.raises(ModelError) as caught:
            await model.complete(ask(120.0))
        await model.aclose()
    assert caught.value.answered == answered


def test_an_unreadable_answer_is_an_answer() -> None:
    assert ModelInvalidAnswer("x").answered and not ModelUnavailable("x").answered


async def test_a_second_outage_of_a_call_starts_a_new_window(clock: OutageClock) -> None:
    away = [Status(503, retry_after="4")] * 8  # waits of 4 to 6 s: each outage fits the window, both together do not
    acts = iter([*away, Reply("not json"), *away, Reply('{"item": "lamp", "price": 3.5}')])
    async with misbehaving_server(lambda _: next(acts)) as server:
        model = client(OPENAI, server, RetryPolicy(window_s=60, base_s=2, cap_s=10))
        reply = await model.complete(ask(600.0, Shopping))
        await model.aclose()
    assert reply.attempts == 18 and clock.slept > 60


async def test_a_listener_is_notified_of_waits(clock: OutageClock) -> None:
    waits: list[Waiting] = []
    failures = iter([Failure(ModelBusy, "HTTP 503: busy", retry=True)] * 6)

    async def attempt() -> str | Failure:
        return next(failures, "well")

    with wait_listener(waits.append):
        async with open_call(120.0, RetryPolicy(window_s=60)) as call:
            assert await call.send(attempt) == "well"
    assert [wait.reason for wait in waits] == ["HTTP 503: busy"] * 6
    assert waits[0].seconds < 1 and 59 < waits[0].patience_s <= 60
    assert [wait.seconds for wait in waits] == sorted(wait.seconds for wait in waits)
    assert waits[-1].patience_s < waits[0].patience_s


def test_at_least_one_attempt_is_made() -> None:
    with pytest.raises(ValueError, match="max_attempts must be at least 1"):
        RetryPolicy(max_attempts=0)
    assert Call(120.0, RetryPolicy()).attempts == 0
