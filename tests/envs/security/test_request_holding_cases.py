"""Requests caused by a step that was not approved are held, whatever the cause. A server counts the arrivals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio

from envs.browser.chromium import Chromium
from envs.browser.session import BrowserSession
from envs.core.actions import ActionResult, Status, Wait
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.held_requests import HeldRequest, HoldCategory
from tests.envs.browser.browsing import QUICK, visit
from tests.envs.security.certificates import server_and_authorities
from tests.envs.security.holding_cases import (
    BUTTON,
    OPENED,
    SUBMITTED,
    Case,
    Counting,
    always,
    click,
    counting,
    do,
    handler,
    type_in,
)
from tests.sampled import sampled

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

Answer = Literal["not asked", "no", "yes"]
ANSWERS: tuple[Answer, ...] = ("not asked", "no", "yes")
Opened = Callable[..., Awaitable[tuple[BrowserSession, Counting]]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def reading() -> AsyncGenerator[Chromium]:
    """Accepts the proxy's own key."""
    async with Chromium.launch(own_tls=True) as chromium:
        yield chromium


@pytest_asyncio.fixture(loop_scope="session")
async def opened(reading: Chromium, tmp_path: Path) -> AsyncGenerator[Opened]:
    """`session, server = await opened(front, hold)`: a session that shows the front page of a server of its own."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("a", encoding="utf-8")
    async with AsyncExitStack() as stack:

        async def make(
            front: str, hold: Sequence[HoldCategory], start: str = "front", *, secured: bool = False, **settings: Any
        ) -> tuple[BrowserSession, Counting]:
            tls, authorities = server_and_authorities(tmp_path, ["localhost"])
            server = await stack.enter_async_context(counting(tls if secured else None))
            server.front = front
            rules = Origins.parse(["127.0.0.1", "localhost"])
            proxy = await stack.enter_async_context(AllowlistProxy(rules, authorities=authorities))
            options = {"hold": tuple(hold), "upload_folder": tmp_path / "files", **settings}
            session = await reading.session(QUICK.model_copy(update=options), proxy, tmp_path / "run")
            stack.push_async_callback(session.close)
            await visit(session, server.url + start)
            return session, server

        yield make


class Person:
    """Gives one answer to all questions and records them."""

    def __init__(self, answer: bool | None) -> None:
        self._answer = answer
        self.questions: list[tuple[HeldRequest, ...]] = []
        self.was_asked = asyncio.Event()

    async def __call__(self, requests: tuple[HeldRequest, ...]) -> bool | None:
        self.questions.append(requests)
        self.was_asked.set()
        return self._answer


async def play(
    session: BrowserSession, server: Counting, case: Case, answer: Answer
) -> tuple[Person, list[ActionResult]]:
    """Executes the steps of *case* and waits for the result: a refused question or an arrival."""
    person = Person(answer == "yes")
    session.holding.ask = person
    if case.before:
        for step in case.before:
            await session.execute(step(await session.observe(), server))
    results = await do(session, server, case.steps)
    async with asyncio.timeout(60):
        await (person.was_asked if answer == "no" else server.arrived).wait()
    return person, [*results, *await do(session, server, [always(Wait()), always(Wait())])]


def some_of(cases: Sequence[Case]) -> list[Any]:
    return sampled((pytest.param(case, id=case.name) for case in cases), every=6)


@pytest.mark.slow
@pytest.mark.parametrize("case", some_of(SUBMITTED))
async def test_nothing_is_sent_unasked_by_any_way(opened: Opened, case: Case) -> None:
    """Symptom: approval was bypassed by the choice of the action, and by listeners of the page."""
    await asyncio.gather(*(run_case(opened, case, answer, ["submit"]) for answer in ANSWERS))


@pytest.mark.slow
@pytest.mark.parametrize("case", some_of(OPENED))
async def test_no_page_is_opened_unasked_by_any_way(opened: Opened, case: Case) -> None:
    await asyncio.gather(*(run_case(opened, case, answer, ["navigation"]) for answer in ANSWERS))


OVER_TLS = (
    "click on a submit button",
    "beacon",
    "a worker",
    "a WebSocket that is open",
    "a page that sends itself by goto",
)


@pytest.mark.parametrize("case", sampled(pytest.param(one, id=one.name) for one in SUBMITTED if one.name in OVER_TLS))
async def test_what_goes_by_https_is_held_too(opened: Opened, case: Case) -> None:
    """The approved case is the control, because the browser does not trust the test's authority without the proxy."""
    assert len([request for request in SUBMITTED if request.name in OVER_TLS]) == len(OVER_TLS)
    await asyncio.gather(*(run_case(opened, case, answer, ["submit"], secured=True) for answer in ANSWERS[1:]))


async def run_case(
    opened: Opened, case: Case, answer: Answer, hold: Sequence[HoldCategory], *, secured: bool = False
) -> None:
    held, start = () if answer == "not asked" else hold, "start" if case.before else "front"
    session, server = await opened(case.html, held, start, secured=secured)
    person, results = await play(session, server, case, answer)
    check(server, case, answer, person, results)


def check(server: Counting, case: Case, answer: Answer, person: Person, results: list[ActionResult]) -> None:
    arrived = [method for method, _ in server.acts]
    held = [request for result in results for request in result.held_requests]
    match answer:
        case "not asked":
            assert arrived == [case.method], "the negative control"
            assert not person.questions and not held
        case "no":
            assert arrived == []
            assert len(person.questions) == 1, "one question a step"
            assert held and all(request.answer == "no" for request in held)
            assert any(result.status is Status.BLOCKED for result in results)
        case "yes":
            assert arrived == [case.method], "exactly once"
            assert all(request.answer == "yes" for request in held) and len(held) >= 1
            assert not any(result.status is Status.BLOCKED for result in results)


async def test_a_refused_request_is_a_network_error_to_the_page_and_is_not_tried_again(opened: Opened) -> None:
    session, server = await opened(handler("act().catch(error => document.title = error.message)"), ["submit"])
    person = session.holding.ask = Person(False)
    await do(session, server, [click(), always(Wait())])
    assert (await session.observe()).title == "Failed to fetch"
    assert len(person.questions) == 1 and server.acts == []


async def test_a_refused_form_leaves_the_page_as_it_is(opened: Opened) -> None:
    session, server = await opened("<input aria-label=Note>" + BUTTON, ["submit", "navigation"])
    session.holding.ask = Person(False)
    results = await do(session, server, [type_in("kept", "Note"), click()])
    seen = await session.observe()
    assert (results[-1].status, seen.url) == (Status.BLOCKED, server.url + "front")
    assert "kept" in seen.text and server.acts == []


@pytest.mark.parametrize("hold", ["submit", "navigation"])
async def test_plain_loads_are_not_held(opened: Opened, hold: HoldCategory) -> None:
    code = "fetch('/events'); new EventSource('/events'); new Image().src = '/a.png'; fetch('/b', {method: 'HEAD'})"
    session, server = await opened(handler(code), [hold])
    person = session.holding.ask = Person(False)
    (result,) = await do(session, server, [click()])
    assert result.status is Status.OK and person.questions == [] and result.held_requests == ()
    assert server.gets.count("/events") >= 2 and "/a.png" in server.gets


POLLS = "<script>setInterval(() => act({body: JSON.stringify({at: Date.now()})}), 100)</script>"


async def test_what_a_page_sends_by_itself_since_it_was_opened_is_not_asked_about(opened: Opened) -> None:
    """A poll needs no question at every step; a request that differs from the poll does."""
    deletes = handler("act({body: JSON.stringify({at: Date.now(), delete: 5})})")
    session, server = await opened(POLLS + deletes, ["submit"])
    async with asyncio.timeout(60):
        await server.arrived.wait()
    person = session.holding.ask = Person(False)
    await do(session, server, [always(Wait()), always(Wait())])
    assert person.questions == [] and len(server.acts) >= 2
    await do(session, server, [click()])
    (question,) = person.questions
    assert dict(question[0].fields)["delete"] == "5"
    assert not any(b"delete" in body for _, body in server.acts)


async def test_a_page_that_was_opened_is_not_deleted_as_its_own_background(opened: Opened) -> None:
    """The start was learned as a GET of this address; a header makes it a DELETE for many servers."""
    deletes = handler("fetch(location.href, {headers: {'X-HTTP-Method-Override': 'DELETE'}})")
    session, server = await opened(deletes, ["submit", "navigation"])
    person = session.holding.ask = Person(False)
    (result,) = await do(session, server, [click()])
    assert [len(question) for question in person.questions] == [1] and result.status is Status.BLOCKED
    assert server.gets.count("/front") == 1
