"""Iframes of other origins behind a real proxy: those of the page's own site share its process, others do not."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path

import pytest
from playwright.async_api import CDPSession

from envs.browser.chromium import Chromium
from envs.browser.session import BrowserSession
from envs.core.actions import Find, Status
from envs.core.observation import Observation
from envs.observer.frames import FrameWorlds
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from tests.envs.browser.browsing import QUICK, click, type_text, visit
from tests.envs.browser.web import Answer, Web
from tests.timing import HANG_S

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SHOP, PAY, BANK = "www.shop.localhost", "pay.shop.localhost", "bank.localhost"

PAYING = """<title>Pay</title><input aria-label=Card>
<button onclick="document.title = 'x'; this.textContent = 'Paid'">Pay now</button><div style='height: 900px'></div>
<span id=s>Help</span><script>s.addEventListener('click', () => s.textContent = 'Helped')</script>"""


async def look_for(session: BrowserSession, text: str, times: int = 1) -> Observation:
    """Observes until *text* occurs *times* times, because settling does not wait for frames."""
    async with asyncio.timeout(HANG_S):
        # The page has no event for a settled frame.
        while (seen := await session.observe()).text.count(text) < times:
            pass
    return seen


@pytest.mark.parametrize("host", [PAY, BANK], ids=["of the same site", "of another site"])
async def test_an_allowed_iframe_is_read_and_acted_in(guarded: Chromium, web: Web, tmp_path: Path, host: str) -> None:
    web["/"] = f'<button>Top</button><div style="height: 900px"></div><iframe src="{web.url("/pay", host)}"></iframe>'
    web["/pay"] = f'{PAYING}<iframe src="{web.url("/deep", SHOP)}"></iframe>'
    web["/deep"] = "<button onclick=\"this.textContent = 'Reached'\">Deep</button>"
    async with AllowlistProxy(Origins.parse([SHOP, host])) as boundary:
        session = await guarded.session(QUICK, boundary, tmp_path)
        await visit(session, web.url("/", SHOP))
        seen = await look_for(session, "Deep")
        assert [(one.key.name, one.key.frame) for one in seen.elements] == [
            ("Top", ""),
            ("Card", "0"),
            ("Pay now", "0"),
            ("Help", "0"),
            ("Deep", "0.0"),
        ], seen.text
        assert (await type_text(session, "Card", "4242")).status is Status.OK
        for name in ("Pay now", "Help", "Deep"):
            assert (await click(session, name)).status is Status.OK
        text = (await look_for(session, "Reached")).text
        assert all(done in text for done in ('"Card" = "4242"', "Paid", "Helped", "Reached"))
        assert "Paid" in (await session.execute(Find(text="Paid"))).output
        await session.close()


async def test_an_iframe_of_another_port_is_read_and_followed(guarded: Chromium, web: Web, tmp_path: Path) -> None:
    with Web() as other:
        web["/"] = f'<iframe name=f src="{other.url()}"></iframe><a target=f href="{web.url("/far", BANK)}">Far</a>'
        other["/"] = "<p>other port<p><a href=/next>Next</a>"
        other["/next"] = f'<p>next page<p><a href="{web.url("/far", BANK)}">Bank</a>'
        web["/far"] = f'<p>far away<p><a href="{other.url()}">Home</a>'
        async with AllowlistProxy(Origins.parse(["127.0.0.1", BANK])) as boundary:
            session = await guarded.session(QUICK, boundary, tmp_path)
            await visit(session, web.url())
            await look_for(session, "other port")
            for name, shows in (("Next", "next page"), ("Bank", "far away"), ("Home", "other port")):
                assert (await click(session, name)).status is Status.OK
                seen = await look_for(session, shows)
                assert seen.note == "", "also where it moved to another process and back"
            await session.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", ["bad.shop.localhost", BANK], ids=["of the same site", "of another site"])
async def test_an_iframe_that_is_not_allowed_is_named_and_not_read(
    guarded: Chromium, web: Web, tmp_path: Path, host: str, scheme: str
) -> None:
    url = web.url("/bad", host).replace("http", scheme)
    web["/"] = f'<button>Top</button><iframe src="{url}"></iframe><iframe src="/redirected"></iframe>'
    web["/bad"] = "<button>Bad</button>"
    web["/redirected"] = Answer("", 302, headers={"Location": url})
    async with AllowlistProxy(Origins.parse([SHOP])) as boundary:
        session = await guarded.session(QUICK, boundary, tmp_path)
        await visit(session, web.url("/", SHOP))
        seen = await look_for(session, f"\n(this frame is not allowed: {scheme}://{host}:{web.port})\n", times=2)
        assert "mira:" not in seen.text and [one.key.name for one in seen.elements] == ["Top"]
        assert (await session.execute(Find(text="no rule"))).output == "no line holds 'no rule'"
        assert web.hits("/bad") == 0
        await session.close()


async def test_what_was_read_before_it_was_forbidden_is_not_read_again(
    guarded: Chromium, web: Web, tmp_path: Path
) -> None:
    """The document decides, not its source: it is also hidden if it was loaded from a cache."""
    web["/"] = f'<button>Top</button><iframe src="{web.url("/pay", PAY)}"></iframe>'
    web["/pay"] = PAYING
    async with AllowlistProxy(Origins.parse([SHOP, PAY])) as boundary:
        session = await guarded.session(QUICK, boundary, tmp_path)
        await visit(session, web.url("/", SHOP))
        await look_for(session, "Pay now")
        boundary.origins = Origins.parse([SHOP])
        seen = await session.observe()
        assert "Pay now" not in seen.text and f"(this frame is not allowed: http://{PAY}:{web.port})" in seen.text
        assert [one.key.name for one in seen.elements] == ["Top"]
        assert "no line" in (await session.execute(Find(text="Pay now"))).output
        await session.close()


async def session_of_frame(frames: FrameWorlds, earlier: CDPSession | None) -> CDPSession:
    """Waits until the tab has one frame in its own process, with another session than *earlier*: there is no event."""
    async with asyncio.timeout(HANG_S):
        while True:
            _, *others = await frames.sessions(HANG_S)
            if len(others) == 1 and others[0] is not earlier:
                return others[0]


async def test_the_sessions_of_removed_iframes_are_closed(guarded: Chromium, web: Web, tmp_path: Path) -> None:
    web["/"] = "<p id=p></p>"
    web["/pay"] = "<button>Pay</button>"
    async with AllowlistProxy(Origins.parse([SHOP, BANK])) as boundary:
        session = await guarded.session(QUICK, boundary, tmp_path)
        await visit(session, web.url("/", SHOP))
        frames = FrameWorlds(session.page)
        kept: list[weakref.ref[CDPSession]] = []
        for number in range(4):
            frame = f"<iframe src='{web.url(f'/pay?{number}', BANK)}'></iframe>"
            await session.page.evaluate("html => { p.innerHTML = html }", frame)
            kept.append(weakref.ref(await session_of_frame(frames, kept[-1]() if kept else None)))
        async with asyncio.timeout(HANG_S):  # the next call closes the session of an iframe removed during the last
            while [one() is not None for one in kept] != [False, False, False, True]:
                await frames.sessions(HANG_S)
                gc.collect()
        await session.close()
