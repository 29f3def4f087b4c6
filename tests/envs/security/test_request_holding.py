"""Request holding without a browser: held categories, questions, background requests."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from envs.browser.step_clock import StepClock
from envs.core.errors import BadInput
from envs.security.background_requests import Background
from envs.security.held_requests import MAX_FIELDS, MAX_VALUE, HeldRequest, categories_of, held_request
from envs.security.outgoing_requests import MESSAGE, Outgoing
from envs.security.request_holding import MAX_QUESTIONS, MAX_TOGETHER, RequestHolding
from tests.timing import LoopClock

URL = "https://shop.example/act"
FORM = (b"content-type", b"application/x-www-form-urlencoded; charset=UTF-8")
NAVIGATES = (b"sec-fetch-mode", b"navigate")


def sent(
    body: bytes = b"a=1", *fields: tuple[bytes, bytes], method: str = "POST", url: str = URL, **more: Any
) -> Outgoing:
    return Outgoing(method, url, fields, body, **more)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (sent(), {"submit"}),
        (sent(method="PUT"), {"submit"}),
        (sent(method="patch"), {"submit"}),
        (sent(method="get"), {"submit"}),  # held, because methods are case-sensitive
        (sent(b"", NAVIGATES), {"submit", "navigation"}),
        (sent(b"", NAVIGATES, method="GET"), {"navigation"}),
        (sent(b"", (b"upgrade-insecure-requests", b"1"), method="GET"), {"navigation"}),
        (sent(b"", (b"sec-fetch-mode", b"cors"), (b"upgrade-insecure-requests", b"1"), method="GET"), set()),
        (sent(b"", (b"accept", b"*/*"), method="GET"), set()),
        (sent(b"", (b"accept", b"text/html"), (b"sec-purpose", b"prefetch"), method="GET"), {"navigation"}),
        (sent(b"", (b"sec-fetch-mode", b"no-cors"), (b"sec-purpose", b"prefetch"), method="GET"), {"navigation"}),
        (sent(b"", method="GET"), {"navigation"}),  # a download over plain http
        (sent(b"", method="GET", kind="websocket"), set()),
        (sent(b"", (b"accept", b"*/*"), (b"x-http-method-override", b"DELETE"), method="GET"), {"submit"}),
        (sent(b"", (b"accept", b"*/*"), (b"x-method-override", b"PUT"), method="GET"), {"submit"}),
        (sent(b"", method="HEAD"), set()),
        (sent(b"", method="OPTIONS"), set()),
        (sent(b"x", NAVIGATES, method=MESSAGE), {"submit"}),
    ],
)
def test_categories(request_: Outgoing, expected: set[str]) -> None:
    assert categories_of(request_) == expected


PARTS = (
    b'--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nA b\r\n'
    b'--b\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\n12345\r\n--b--\r\n'
)
FIELDS = [
    pytest.param(sent(b"a=1&b=c+d%21&e=", FORM), (("a", "1"), ("b", "c d!"), ("e", "")), id="form"),
    pytest.param(sent(b'{"a": 1, "b": "x", "c": [2]}'), (("a", "1"), ("b", "x"), ("c", "[2]")), id="json"),
    pytest.param(sent(b"[1, 2]"), (("body", "[1, 2]"),), id="json that is no object"),
    pytest.param(sent(b"delete 5"), (("body", "delete 5"),), id="text"),
    pytest.param(sent(b"\xff\xfe"), (("body", "2 bytes: \ufffd\ufffd"),), id="bytes"),
    pytest.param(sent(b""), (), id="nothing"),
    pytest.param(sent(b"[" * 100_000), (("body", "[" * (MAX_VALUE - 1) + "…"),), id="deep"),
    pytest.param(
        sent(PARTS, (b"content-type", b"multipart/form-data; boundary=b")),
        (("title", "A b"), ("f", "file 'a.txt', 5 bytes")),
        id="with a file",
    ),
    pytest.param(sent(b"no parts", (b"content-type", b"multipart/form-data")), (("body", "8 bytes"),), id="broken"),
    pytest.param(sent(b"move 5", method=MESSAGE), (("message", "move 5"),), id="a message"),
    pytest.param(sent(b"a=1", FORM, is_whole=False), (("a", "1"), ("…", "the body continues")), id="cut"),
]


@pytest.mark.parametrize(("request_", "expected"), FIELDS)
def test_fields_are_shown_decoded(request_: Outgoing, expected: tuple[tuple[str, str], ...]) -> None:
    assert held_request(request_, str).fields == expected


def test_what_is_shown_is_bounded_and_masked_before_it_is_cut() -> None:
    long = held_request(sent("&".join(f"n{i}=v" for i in range(99)).encode(), FORM), str)
    assert len(long.fields) == MAX_FIELDS and long.fields[-1] == ("…", "80 more")
    body = b"a=" + b"x" * (MAX_VALUE - 4) + b"hunter2hunter2"
    masked = held_request(
        sent(body, FORM, url=URL + "?q=hunter2hunter2"), lambda text: text.replace("hunter2" * 2, "*")
    )
    assert masked.fields == (("a", "x" * (MAX_VALUE - 4) + "*"),)
    assert masked.url == URL + "?q=*"
    named = held_request(sent(method="HUNTER2"), lambda text: text.replace("HUNTER2", "*"))
    assert named.method == "*", "a page chooses its methods"


def test_a_read_that_a_header_overrides_is_shown_as_what_it_may_be() -> None:
    read, change = (held_request(sent(b"", *fields, method="GET"), str) for fields in ((), OVERRIDDEN))
    assert read.changes_nothing and read.in_words() == f"GET {URL}"
    assert not change.changes_nothing and change.in_words() == f"GET as DELETE {URL}"
    masked = held_request(sent(b"", *OVERRIDDEN, method="GET"), lambda text: text.replace("DELETE", "*"))
    assert masked.overrides == ("*",), "a page chooses the values of its headers"


Person = Callable[[tuple[HeldRequest, ...]], Awaitable[bool | None]]


class Answers:
    """Gives its answers in turn and repeats the last one."""

    def __init__(self, *replies: bool | None) -> None:
        self._replies = replies
        self.questions: list[list[str]] = []

    async def __call__(self, requests: tuple[HeldRequest, ...]) -> bool | None:
        self.questions.append([dict(request.fields).get("a", "") for request in requests])
        return self._replies[min(len(self.questions), len(self._replies)) - 1]


def new_holding(person: Person | None, *, background: tuple[str, ...] = ()) -> RequestHolding:
    holding = RequestHolding(("submit",), background)
    holding.ask = person
    return holding


async def numbered(holding: RequestHolding, *numbers: int) -> list[bool]:
    """Checks requests that arrive together; True for each that was sent."""
    problems = await asyncio.gather(*(holding.check(sent(f"a={n}".encode(), FORM)) for n in numbers))
    return [not problem for problem in problems]


async def test_what_comes_together_makes_one_question() -> None:
    person = Answers(True)
    holding = new_holding(person)
    holding.begin(approved=False)
    assert await numbered(holding, 1, 2, 3) == [True] * 3
    assert person.questions == [["1", "2", "3"]]
    assert [request.answer for request in holding.drain()] == ["yes"] * 3 and holding.drain() == ()


async def test_many_are_asked_about_in_parts() -> None:
    person = Answers(True)
    holding = new_holding(person)
    holding.begin(approved=False)
    assert all(await numbered(holding, *range(MAX_TOGETHER + 2)))
    assert [len(batch) for batch in person.questions] == [MAX_TOGETHER, 2]


async def test_after_a_refusal_the_rest_of_the_step_fails_unasked() -> None:
    person = Answers(False, True)
    holding = new_holding(person)
    holding.begin(approved=False)
    assert await numbered(holding, 1) == [False]
    assert await numbered(holding, 2) == [False]
    assert person.questions == [["1"]]
    assert [request.answer for request in holding.drain()] == ["no", "no"]
    holding.begin(approved=False)
    assert await numbered(holding, 3) == [True], "another step has its own question"


async def test_the_questions_about_one_step_have_an_end() -> None:
    person = Answers(True)
    holding = new_holding(person)
    holding.begin(approved=False)
    replies = [await numbered(holding, n) for n in range(MAX_QUESTIONS + 2)]
    assert replies == [[True]] * MAX_QUESTIONS + [[False]] * 2
    assert len(person.questions) == MAX_QUESTIONS


async def test_with_nobody_to_ask_it_is_refused() -> None:
    holding = new_holding(None)
    holding.begin(approved=False)
    assert await numbered(holding, 1) == [False]
    assert [request.answer for request in holding.drain()] == ["nobody"]


async def test_what_was_approved_and_what_opens_the_task_is_not_asked_about() -> None:
    person = Answers(False)
    holding = new_holding(person)
    assert await numbered(holding, 1) == [True], "the start"
    holding.begin(approved=True)
    assert await numbered(holding, 2) == [True]
    holding.reopen()
    assert await numbered(holding, 3) == [False], "saved tabs that are opened again send nothing by themselves"
    assert person.questions == [] and holding.drain() == ()


async def test_a_request_that_the_browser_gives_up_is_not_sent_by_a_late_yes() -> None:
    answer, asked = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def person(requests: tuple[HeldRequest, ...]) -> bool:
        asked.set()
        return await answer

    holding = new_holding(person)
    holding.begin(approved=False)
    given_up, kept = (asyncio.ensure_future(holding.check(sent(body))) for body in (b"1", b"2"))
    await asked.wait()
    given_up.cancel()
    answer.set_result(True)
    assert await kept == "" and given_up.cancelled()
    assert await holding.wait_until_decided()


async def test_closing_fails_what_is_held_and_what_comes_later() -> None:
    asked = asyncio.Event()

    async def person(requests: tuple[HeldRequest, ...]) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    holding = new_holding(person)
    holding.begin(approved=True)
    holding.begin(approved=False)
    held = asyncio.ensure_future(holding.check(sent()))
    await asked.wait()
    await holding.close()
    assert await held != "" and await holding.check(sent()) != ""


async def test_an_exception_of_the_question_is_raised_by_the_step_and_nothing_is_sent() -> None:
    async def person(requests: tuple[HeldRequest, ...]) -> bool:
        raise RuntimeError("no terminal")

    holding = new_holding(person)
    holding.begin(approved=False)
    assert await numbered(holding, 1, 2) == [False, False]
    with pytest.raises(RuntimeError, match="no terminal"):
        await holding.wait_until_decided()
    assert not await holding.wait_until_decided()


NOW = time.time()


def iso(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).isoformat()


POLLS = [
    pytest.param({"a": 1}, {"a": 1}, True, id="the same"),
    pytest.param({"a": 1}, {"a": 2}, False, id="another number"),
    pytest.param({"id": "10000000001"}, {"id": "10000000002"}, False, id="a long number that is no time"),
    pytest.param({"at": int(NOW)}, {"at": int(NOW) + 60}, True, id="seconds"),
    pytest.param({"at": NOW}, {"at": NOW + 60}, True, id="seconds with a fraction"),
    pytest.param({"at": int(NOW * 1000)}, {"at": int(NOW * 1000) + 60_000}, True, id="milliseconds"),
    pytest.param({"at": iso(NOW)}, {"at": iso(NOW + 60)}, True, id="a date"),
    pytest.param({"at": int(NOW)}, {"at": int(NOW) + 400_000}, False, id="a time far away"),
    pytest.param({"at": iso(NOW)}, {"at": iso(NOW + 400_000)}, False, id="a date far away"),
    pytest.param({"op": "poll"}, {"op": "delete"}, False, id="another text at the same address"),
    pytest.param({"op": "poll"}, {"op": "poll", "and": 1}, False, id="one more field"),
]


@pytest.mark.parametrize(("first", "later", "covered"), POLLS)
async def test_background_is_what_a_page_sent_before_any_action(first: Any, later: Any, covered: bool) -> None:
    """One address can serve a poll and an order, so the address alone does not decide."""
    holding = new_holding(None)
    assert await holding.check(sent(json.dumps(first).encode())) == ""
    holding.begin(approved=False)
    assert (await holding.check(sent(json.dumps(later).encode())) == "") == covered


PAGE = ((b"sec-fetch-mode", b"navigate"), (b"accept", b"text/html"))
FETCH = ((b"sec-fetch-mode", b"cors"), (b"accept", b"*/*"))
OVERRIDDEN = ((b"x-http-method-override", b"DELETE"),)


@pytest.mark.parametrize(
    ("method", "first", "later", "covered"),
    [
        ("GET", PAGE, PAGE, True),
        ("GET", PAGE, (*FETCH, *OVERRIDDEN), False),
        ("GET", PAGE, (*PAGE, *OVERRIDDEN), False),
        ("POST", FETCH, (*FETCH, *OVERRIDDEN), False),
        ("POST", (*FETCH, (b"x-http-method-override", b"GET")), (*FETCH, *OVERRIDDEN), False),
        ("POST", (*FETCH, *OVERRIDDEN), (*FETCH, *OVERRIDDEN), True),
        ("POST", FETCH, PAGE, False),
    ],
)
async def test_a_header_does_not_make_a_change_of_what_was_learned_as_a_read(
    method: str, first: tuple[tuple[bytes, bytes], ...], later: tuple[tuple[bytes, bytes], ...], covered: bool
) -> None:
    """A page sent `fetch(location.href, {headers: {'X-HTTP-Method-Override': 'DELETE'}})` as its own background."""
    holding = RequestHolding(("submit", "navigation"))
    assert await holding.check(sent(b"", *first, method=method)) == ""
    holding.begin(approved=False)
    assert (await holding.check(sent(b"", *later, method=method)) == "") == covered


async def test_what_is_sent_after_an_action_is_never_background() -> None:
    holding = new_holding(None)
    holding.acted()
    assert await holding.check(sent(b"after an action of the task's start")) == ""
    holding.begin(approved=True)
    assert await holding.check(sent(b"approved")) == ""
    holding.begin(approved=False)
    assert await holding.check(sent(b"after an action of the task's start")) != ""
    holding.begin(approved=False)
    assert await holding.check(sent(b"approved")) != "", "an approved request needs approval again"


@pytest.mark.parametrize(
    ("named", "url", "covered"),
    [
        ("https://shop.example/act", "https://shop.example/act", True),
        ("https://SHOP.example:443/act", "https://shop.example/act?t=1", True),
        ("https://shop.example/act", "https://shop.example/act/5", False),
        ("https://shop.example/act", "http://shop.example/act", False),
        ("https://shop.example/act*", "https://shop.example/act/5", True),
        ("https://shop.example/act*", "https://shop.example.evil/act/5", False),
        ("https://shop.example/*", "https://shop.example/x", True),
        ("https://shop.example/rum/*", "https://shop.example/rum/..%2forder", False),
        ("https://shop.example/rum/*", "https://shop.example/rum/..;/order", False),
        ("https://shop.example/rum/*", "https://shop.example/rum/%252e%252e/order", False),
    ],
)
async def test_the_user_may_name_background(named: str, url: str, covered: bool) -> None:
    holding = new_holding(None, background=(named,))
    holding.begin(approved=False)
    assert (await holding.check(sent(url=url)) == "") == covered


@pytest.mark.parametrize("named", ["shop.example/act", "https://shop.example", "ftp://a/b", "https://*/", "*", ""])
def test_a_background_that_names_no_address_is_refused(named: str) -> None:
    with pytest.raises(BadInput, match="background"):
        Background((named,))


@pytest.fixture
async def time_passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Awaitable[None]]:
    """Advances the clock of the event loop."""
    clock = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock.now)
    return clock.sleep


async def test_the_clock_of_a_step_stands_still_while_a_person_is_asked(
    time_passes: Callable[[float], Awaitable[None]],
) -> None:
    clock = StepClock(may_stop=True)
    before = clock.now()
    with clock.stopped():
        stopped = clock.now()
        await time_passes(1_000)
        assert clock.now() == stopped
    assert clock.now() - before < 500 and clock.stops == 1
    await time_passes(1_000)
    assert clock.now() - before >= 1_000


async def test_a_call_is_bounded_by_the_clock_and_not_by_playwright(
    time_passes: Callable[[float], Awaitable[None]],
) -> None:
    clock = StepClock(may_stop=True)
    timeouts: list[float] = []
    answered = asyncio.Event()

    async def call(milliseconds: float) -> str:
        timeouts.append(milliseconds)
        await answered.wait()
        return "done"

    async def ask() -> None:
        with clock.stopped():
            await time_passes(1_000)
        answered.set()

    asking = asyncio.ensure_future(ask())
    assert await clock.call(call, 100.0) == "done"
    await asking
    answered.clear()
    with pytest.raises(Exception, match="Timeout 100ms exceeded"):
        await clock.call(call, 0.1)
    answered.set()
    await StepClock().call(call, 5.0)
    assert timeouts == [0, 0, 5000]
