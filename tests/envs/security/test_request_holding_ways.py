"""What a step that nobody has approved makes a page send is held, whatever causes it; a server counts what arrives."""

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
from tests.envs.security.holding_ways import (
    BUTTON,
    OPENED,
    SUBMITTED,
    Counting,
    Way,
    always,
    click,
    counting,
    do,
    handler,
    type_in,
)

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="session")]

Said = Literal["not asked", "no", "yes"]
SAID: tuple[Said, ...] = ("not asked", "no", "yes")
Opened = Callable[..., Awaitable[tuple[BrowserSession, Counting]]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def reading() -> AsyncGenerator[Chromium]:
    """Accepts the boundary's own key."""
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
            boundary = await stack.enter_async_context(AllowlistProxy(rules, authorities=authorities))
            given = {"hold": tuple(hold), "upload_folder": tmp_path / "files", **settings}
            session = await reading.session(QUICK.model_copy(update=given), boundary, tmp_path / "run")
            stack.push_async_callback(session.close)
            await visit(session, server.url + start)
            return session, server

        yield make


class Person:
    """Gives one answer, and keeps what was asked."""

    def __init__(self, said: bool | None) -> None:
        self._said = said
        self.asked: list[tuple[HeldRequest, ...]] = []
        self.was_asked = asyncio.Event()

    async def __call__(self, requests: tuple[HeldRequest, ...]) -> bool | None:
        self.asked.append(requests)
        self.was_asked.set()
        return self._said


async def play(session: BrowserSession, server: Counting, way: Way, said: Said) -> tuple[Person, list[ActionResult]]:
    """Does what *way* says and waits for what comes of it: a question that is refused, or an arrival."""
    person = Person(said == "yes")
    session.holding.ask = person
    if way.before:
        for step in way.before:
            await session.execute(step(await session.observe(), server))
    results = await do(session, server, way.steps)
    async with asyncio.timeout(20):
        await (person.was_asked if said == "no" else server.arrived).wait()
    return person, [*results, *await do(session, server, [always(Wait()), always(Wait())])]


def sampled(ways: Sequence[Way]) -> list[Any]:
    """Every third is part of `make test`; all of them take minutes, `pytest -m browser` runs them."""
    marks = ((), pytest.mark.heavy)
    return [pytest.param(way, id=way.name, marks=marks[place % 3 != 0]) for place, way in enumerate(ways)]


@pytest.mark.slow
@pytest.mark.parametrize("way", sampled(SUBMITTED))
async def test_nothing_is_sent_unasked_by_any_way(opened: Opened, way: Way) -> None:
    """Symptom: approval was bypassed by the choice of the action, and by whatever a page listens to."""
    await asyncio.gather(*(tried(opened, way, said, ["submit"]) for said in SAID))


@pytest.mark.slow
@pytest.mark.parametrize("way", sampled(OPENED))
async def test_no_page_is_opened_unasked_by_any_way(opened: Opened, way: Way) -> None:
    await asyncio.gather(*(tried(opened, way, said, ["navigation"]) for said in SAID))


OVER_TLS = (
    "click on a submit button",
    "beacon",
    "a worker",
    "a WebSocket that is open",
    "a page that sends itself by goto",
)


@pytest.mark.parametrize("way", [way for way in SUBMITTED if way.name in OVER_TLS], ids=lambda way: way.name)
async def test_what_goes_by_https_is_held_too(opened: Opened, way: Way) -> None:
    """Without approval the browser does not know the test's authority, so that the control is what is approved."""
    assert len([one for one in SUBMITTED if one.name in OVER_TLS]) == len(OVER_TLS)
    await asyncio.gather(*(tried(opened, way, said, ["submit"], secured=True) for said in SAID[1:]))


async def tried(opened: Opened, way: Way, said: Said, hold: Sequence[HoldCategory], *, secured: bool = False) -> None:
    held, start = () if said == "not asked" else hold, "start" if way.before else "front"
    session, server = await opened(way.html, held, start, secured=secured)
    person, results = await play(session, server, way, said)
    check(server, way, said, person, results)


def check(server: Counting, way: Way, said: Said, person: Person, results: list[ActionResult]) -> None:
    arrived = [method for method, _ in server.acts]
    held = [one for result in results for one in result.held_requests]
    match said:
        case "not asked":
            assert arrived == [way.method], "the negative control"
            assert not person.asked and not held
        case "no":
            assert arrived == []
            assert len(person.asked) == 1, "one question a step"
            assert held and all(one.answer == "no" for one in held)
            assert any(result.status is Status.BLOCKED for result in results)
        case "yes":
            assert arrived == [way.method], "exactly once"
            assert all(one.answer == "yes" for one in held) and len(held) >= 1
            assert not any(result.status is Status.BLOCKED for result in results)


async def test_a_refused_request_is_a_network_error_to_the_page_and_is_not_tried_again(opened: Opened) -> None:
    session, server = await opened(handler("act().catch(error => document.title = error.message)"), ["submit"])
    person = session.holding.ask = Person(False)
    await do(session, server, [click(), always(Wait())])
    assert (await session.observe()).title == "Failed to fetch"
    assert len(person.asked) == 1 and server.acts == []


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
    assert result.status is Status.OK and person.asked == [] and result.held_requests == ()
    assert server.gets.count("/events") >= 2 and "/a.png" in server.gets


POLLS = "<script>setInterval(() => act({body: JSON.stringify({at: Date.now()})}), 100)</script>"


async def test_what_a_page_sends_by_itself_since_it_was_opened_is_not_asked_about(opened: Opened) -> None:
    """A poll would make every step a question; the same page is asked about what differs from its poll."""
    deletes = handler("act({body: JSON.stringify({at: Date.now(), delete: 5})})")
    session, server = await opened(POLLS + deletes, ["submit"])
    async with asyncio.timeout(20):
        await server.arrived.wait()
    person = session.holding.ask = Person(False)
    await do(session, server, [always(Wait()), always(Wait())])
    assert person.asked == [] and len(server.acts) >= 2
    await do(session, server, [click()])
    (question,) = person.asked
    assert dict(question[0].fields)["delete"] == "5"
    assert not any(b"delete" in body for _, body in server.acts)
