"""Helper functions for tests of sessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from envs.browser.session import BrowserSession
from envs.core.actions import ActionResult, Click, Goto, Hover, Select, Type, Upload
from envs.core.observation import Observation
from envs.core.settings import SessionSettings, SettleSettings

Opener = Callable[..., Awaitable[BrowserSession]]

QUICK = SessionSettings(step_deadline_s=15.0, navigation_s=10.0, settle=SettleSettings(max_s=1.0))


async def visit(session: BrowserSession, url: str) -> Observation:
    """Opens *url* and observes it."""
    result = await session.execute(Goto(url=url))
    assert result.ok, result
    return await session.observe()


def ref_of(seen: Observation, name: str, role: str | None = None) -> int:
    """Returns the ref of the only element called *name*."""
    found = [e.ref for e in seen.elements if e.key.name == name and role in (None, e.key.role)]
    assert len(found) == 1, f"{name!r}: {found} in\n{seen.text}"
    return found[0]


async def click(session: BrowserSession, name: str, **more: Any) -> ActionResult:
    return await session.execute(Click(ref=ref_of(await session.observe(), name), **more))


async def type_text(session: BrowserSession, name: str, text: str, **more: Any) -> ActionResult:
    return await session.execute(Type(ref=ref_of(await session.observe(), name), text=text, **more))


async def select(session: BrowserSession, name: str, option: str) -> ActionResult:
    return await session.execute(Select(ref=ref_of(await session.observe(), name), option=option))


async def hover(session: BrowserSession, name: str) -> ActionResult:
    return await session.execute(Hover(ref=ref_of(await session.observe(), name)))


async def upload(session: BrowserSession, name: str, path: str) -> ActionResult:
    return await session.execute(Upload(ref=ref_of(await session.observe(), name), path=path))
