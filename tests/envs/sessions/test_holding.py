"""What a step that nobody has approved makes a page send is held, whatever causes it; a server counts what arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio

from envs.actions import ActionResult, Status, Wait
from envs.chromium import Chromium
from envs.held_requests import HeldRequest, HoldCategory
from envs.origins import Origins
from envs.proxy import Boundary
from envs.session import BrowserSession
from tests.envs.sessions.browsing import QUICK, visit
from tests.envs.sessions.holding_ways import OPENED, SUBMITTED, Counting, Way, always, counting, do

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
            front: str, hold: Sequence[HoldCategory], start: str = "front", **settings: Any
        ) -> tuple[BrowserSession, Counting]:
            server = await stack.enter_async_context(counting())
            server.front = front
            boundary = await stack.enter_async_context(Boundary(Origins.parse(["127.0.0.1"])))
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


@pytest.mark.slow
@pytest.mark.parametrize("way", SUBMITTED, ids=lambda way: way.name)
async def test_nothing_is_sent_unasked_by_any_way(opened: Opened, way: Way) -> None:
    """Symptom: approval was bypassed by the choice of the action, and by whatever a page listens to."""
    await asyncio.gather(*(tried(opened, way, said, ["submit"]) for said in SAID))


@pytest.mark.slow
@pytest.mark.parametrize("way", OPENED, ids=lambda way: way.name)
async def test_no_page_is_opened_unasked_by_any_way(opened: Opened, way: Way) -> None:
    await asyncio.gather(*(tried(opened, way, said, ["navigation"]) for said in SAID))


async def tried(opened: Opened, way: Way, said: Said, hold: Sequence[HoldCategory]) -> None:
    session, server = await opened(way.html, () if said == "not asked" else hold, "start" if way.before else "front")
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
