"""Hostile pages: every step meets its deadline, no request leaves the allowlist, and the session continues."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from playwright.async_api import Error as PlaywrightError

from envs.browser.session import BrowserSession
from envs.core.actions import Click, CloseTab, Goto, NewTab, Reason, Status, Wait
from envs.security.allowlist import Origins
from envs.security.secrets import SecretVault
from tests.envs.browser.browsing import QUICK, Opener, click, ref_of, visit
from tests.envs.browser.web import Answer, Web
from tests.timing import HANG_S, Bound

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

A_FEW_S = 6.0
"""Time beyond the deadline for closing the page and opening a blank one."""


async def assert_usable(session: BrowserSession, web: Web) -> None:
    """Asserts that the session continues normally."""
    web["/fine"] = "<button onclick=\"this.textContent = 'Works'\">Go</button>"
    await visit(session, web.url("/fine"))
    assert (await click(session, "Go")).status is Status.OK
    assert "Works" in (await session.observe()).text


@pytest.mark.parametrize(
    ("attack", "status"),
    [
        ("for (;;) alert('again')", Status.TIMEOUT),
        ("for (;;);", Status.TIMEOUT),
        ("for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1e9)", Status.TIMEOUT),
    ],
)
async def test_a_click_that_never_returns(web: Web, opener: Opener, attack: str, status: Status) -> None:
    session = await opener(step_deadline_s=2.0)
    headers = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}
    web["/"] = Answer(f'<button onclick="{attack}">Go</button>', headers=headers)
    seen = await visit(session, web.url())
    with Bound(2.0, A_FEW_S):
        result = await session.execute(Click(ref=ref_of(seen, "Go")))
    if "Atomics" not in attack:  # forbidden on the main thread: the page gets an exception
        assert result.status is status
        assert "closed" in (await session.observe()).note
    await assert_usable(session, web)


@pytest.mark.parametrize(
    "attack",
    [
        "for (;;) alert(1)",
        "for (;;);",
        "setInterval(() => alert(1), 1)",
        "const p = document.createElement('p'); for (;;) document.body.append(p.cloneNode())",
    ],
)
async def test_a_page_that_never_rests_after_loading(web: Web, opener: Opener, attack: str) -> None:
    observe = QUICK.observe.model_copy(update={"timeout_s": 2.0})
    session = await opener(step_deadline_s=2.0, navigation_s=1.5, observe=observe)
    web["/"] = f"<p>hello</p><script>setTimeout(() => {{ {attack} }}, 50)</script>"
    for step in (session.execute(Goto(url=web.url())), session.observe(), session.execute(Wait()), session.observe()):
        with Bound(2.0, A_FEW_S):
            await step
    assert (await session.execute(CloseTab())).status is Status.OK
    await assert_usable(session, web)


@pytest.mark.parametrize(
    "body",
    [
        "<script>document.write('<div>'.repeat(20000) + 'deep')</script>",
        "<script>document.write('<button>Buy</button>'.repeat(100000))</script>",
        "<script>document.title = 'x'.repeat(5e6); document.write('<p title=' + 'y'.repeat(5e6) + '>z')</script>",
    ],
)
async def test_pages_of_enormous_size(web: Web, opener: Opener, body: str) -> None:
    session = await opener(step_deadline_s=4.0)
    web["/"] = body
    with Bound(4.0, A_FEW_S):
        await session.execute(Goto(url=web.url()))
    with Bound(QUICK.observe.timeout_s, A_FEW_S):
        seen = await session.observe()
    assert len(seen.text) < 4 * QUICK.observe.max_chars
    await assert_usable(session, web)


async def test_a_renderer_that_crashes_between_two_steps(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<button>Go</button>"
    seen = await visit(session, web.url())
    await crash(session)
    result = await session.execute(Click(ref=ref_of(seen, "Go")))
    assert (result.status, result.reason) == (Status.CRASHED, Reason.PAGE_CRASHED)
    assert "crashed" in (await session.observe()).note
    await assert_usable(session, web)


async def test_a_renderer_that_crashes_while_it_is_looked_at(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<button>Go</button>"
    await visit(session, web.url())
    await crash(session)
    assert "crashed" in (await session.observe()).note
    await assert_usable(session, web)


async def crash(session: BrowserSession) -> None:
    """The command itself never returns, because its renderer is dead."""
    cdp = await session.context.new_cdp_session(session.page)
    async with session.page.expect_event("crash", timeout=HANG_S * 1000):
        command = asyncio.ensure_future(cdp.send("Page.crash"))
    command.cancel()


async def test_a_storm_of_windows(web: Web, opener: Opener) -> None:
    session = await opener(max_tabs=3)
    web["/"] = """<button onclick="for (let i = 0; i < 30; i++) window.open('/popup?' + i)">Go</button>
        <script>for (let i = 0; i < 30; i++) open('/popup?load' + i); onkeydown = () => open('/popup?key')</script>"""
    web["/popup"] = "<script>open(location.href + 'x')</script><p>popup"
    await visit(session, web.url())
    assert web.hits("/popup") == 0, "no window opens without a gesture"
    with Bound(QUICK.step_deadline_s, A_FEW_S):
        await click(session, "Go")
    assert len((await session.observe()).tabs) <= 3
    await session.execute(Goto(url="about:blank"))
    await assert_usable(session, web)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        " file:///etc/passwd",
        "data:text/html,<p>x",
        "view-source:http://127.0.0.1/",
        "view-source:file:///etc/passwd",
        "javascript:document.write(1)",
        "chrome://version",
        "chrome://crash",
        "about:srcdoc",
        "blob:http://127.0.0.1/0",
        "ftp://127.0.0.1/",
        "http://127.0.0.1:1/",
        "http://evil.example/",
        "http://127.0.0.1@evil.example/",
        "//evil.example/",
        "",
    ],
)
async def test_addresses_that_are_refused(web: Web, opener: Opener, url: str) -> None:
    session = await opener()
    web["/"] = "<p>home"
    await visit(session, web.url())
    result = await session.execute(Goto(url=url))
    assert result.status is Status.BLOCKED, result
    assert result.url == web.url()


@pytest.mark.parametrize("url", ["http://[abc", "//[x", "https://ex\u2100mple.com/", "https://evil.example]/"])
async def test_an_address_that_cannot_be_parsed_is_refused(web: Web, opener: Opener, url: str) -> None:
    vault = SecretVault({"PW": ("Kestrel7-Quartz", Origins.parse([web.url().rstrip("/")]))})
    web["/"] = "<p>home"
    for session in (await opener(), await opener(vault=vault)):
        await visit(session, web.url())
        result = await session.execute(Goto(url=url))
        assert (result.status, result.reason, result.url) == (Status.BLOCKED, Reason.ORIGIN_NOT_ALLOWED, web.url())
        assert result.message == "this is no valid http or https address without credentials"
        assert "home" in (await session.observe()).text


class Attacker:
    """A server that is not allowed; it counts its connections."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.connections = 0
        Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def attacker() -> Iterator[Attacker]:
    server = Attacker()
    yield server
    server.close()


ESCAPES = {
    "link": "<a href='{evil}'>Go</a>",
    "script": "<button onclick=\"location = '{evil}'\">Go</button>",
    "form": "<form action='{evil}' method=post><button>Go</button></form>",
    "window": "<button onclick=\"window.open('{evil}')\">Go</button>",
    "redirect": "<a href='/redirect'>Go</a>",
    "refresh": "<button onclick=\"document.write('<meta http-equiv=refresh content=0;url={evil}>')\">Go</button>",
    "image": "<button onclick=\"new Image().src = '{evil}'\">Go</button>",
    "fetch": "<button onclick=\"fetch('{evil}', {{mode: 'no-cors'}})\">Go</button>",
    "frame": "<button onclick=\"document.body.innerHTML += '<iframe src={evil}>'\">Go</button>",
    "socket": "<button onclick=\"new WebSocket('{evil}'.replace('http', 'ws'))\">Go</button>",
    "beacon": "<button onclick=\"navigator.sendBeacon('{evil}', 'x')\">Go</button>",
    "source": "<button onclick=\"new EventSource('{evil}')\">Go</button>",
    "worker": "<button onclick=\"new Worker(URL.createObjectURL(new Blob(['fetch(`{evil}`)'])))\">Go</button>",
    "prefetch": "<button onclick=\"document.head.innerHTML += '<link rel=prefetch href={evil}>'\">Go</button>",
    "preconnect": "<button onclick=\"document.head.innerHTML += '<link rel=preconnect href={evil}>'\">Go</button>",
}


@pytest.mark.parametrize("way", ESCAPES)
async def test_ways_out_of_the_allowlist(web: Web, opener: Opener, attacker: Attacker, way: str) -> None:
    session = await opener()
    evil = f"http://127.0.0.1:{attacker.port}/"
    web["/redirect"] = Answer(status=302, headers={"Location": evil})
    web["/"] = "<p>home</p>" + ESCAPES[way].format(evil=evil)
    await visit(session, web.url())
    result = await click(session, "Go")
    await session.execute(Wait())
    assert attacker.connections == 0
    assert session.url in (web.url(), "about:blank")
    if way in ("link", "script", "form", "redirect"):
        assert result.status is Status.BLOCKED
        (blocked,) = result.blocked_requests
        assert (blocked.origin, blocked.requests, blocked.kinds) == (evil.rstrip("/"), 1, ("document",))
        assert session.url == web.url(), "back where it was"


async def test_the_way_back_bears_the_blame_of_the_refused_visit(
    web: Web, opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chromium may report a failed visit only after the session has begun to go back, which still continues."""
    session = await opener()
    go_back = session.page.go_back
    ways: list[asyncio.Task[object]] = []

    async def blamed(**options: Any) -> None:
        ways.append(asyncio.create_task(go_back(**options)))
        raise PlaywrightError("Page.go_back: net::ERR_TUNNEL_CONNECTION_FAILED")

    monkeypatch.setattr(session.page, "go_back", blamed)
    web["/"] = "<p>home</p><a href='https://evil.example/'>Go</a>"
    await visit(session, web.url())
    result = await click(session, "Go")
    await asyncio.gather(*ways)
    assert len(ways) == 1 and result.status is Status.BLOCKED
    assert session.url == web.url()
    assert "home" in (await session.observe()).text


async def test_without_the_boundary_the_attacker_is_reached(web: Web, attacker: Attacker, opener: Opener) -> None:
    """Negative control: the counted requests arrive if the rules allow them."""
    session = await opener()
    session.boundary.origins = session.boundary.origins.with_url(f"http://127.0.0.1:{attacker.port}/")
    web["/"] = ESCAPES["fetch"].format(evil=f"http://127.0.0.1:{attacker.port}/")
    await visit(session, web.url())
    await click(session, "Go")
    await session.execute(Wait())
    assert attacker.connections > 0


@pytest.mark.parametrize("url", ["file:///etc/passwd", "data:text/html,<p>secret", "view-source:/", "javascript:p.x=1"])
async def test_links_of_other_schemes_lead_nowhere(web: Web, opener: Opener, url: str) -> None:
    session = await opener()
    web["/"] = f"<p id=p>home</p><a href='{url}'>Go</a><a href='{url}' target=_blank>New</a>"
    for name in ("Go", "New"):
        await visit(session, web.url())
        await click(session, name)
        seen = await session.observe()
        assert seen.url in (web.url(), "about:blank") and "root:" not in seen.text and "secret" not in seen.text


async def test_no_udp_leaves_the_browser(web: Web, opener: Opener) -> None:
    """WebRTC would contact a STUN server without the proxy."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stun:
        stun.bind(("127.0.0.1", 0))
        stun.settimeout(0.1)
        session = await opener()
        web["/"] = """<button id=b>Go</button><script>b.onclick = async () => {
            const peer = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:PORT'}]});
            peer.createDataChannel('x');
            peer.onicegatheringstatechange = () => b.dataset.state = peer.iceGatheringState;
            await peer.setLocalDescription(await peer.createOffer());
        }</script>""".replace("PORT", str(stun.getsockname()[1]))
        await visit(session, web.url())
        await click(session, "Go")
        await session.page.wait_for_function("b.dataset.state === 'complete'", timeout=HANG_S * 1000)
        with pytest.raises(TimeoutError):
            stun.recvfrom(100)


async def test_built_ins_that_the_page_replaced_change_nothing(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = """<script>
        Promise = MutationObserver = Event = Object = Array = null;
        setTimeout = () => { throw 1 }; Element.prototype.scrollIntoView = () => { for (;;); };
        Document.prototype.querySelectorAll = () => { throw 1 }; JSON.stringify = () => 'fake';
        </script><button id=b>Go</button><input aria-label=N id=n>"""
    seen = await visit(session, web.url())
    result = await session.execute(Click(ref=ref_of(seen, "Go")))
    assert result.status is Status.OK
    assert (await session.execute(NewTab())).status is Status.OK
