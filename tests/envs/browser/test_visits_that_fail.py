"""Failed visits report their reason: the name, the connection, the certificate, or the server's answer."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from envs.browser.chromium import Chromium
from envs.core.actions import Goto, NewTab, Reason, Status
from envs.core.errors import ResetFailed
from envs.core.tasks import TaskRef
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.blocked_requests import Place
from envs.security.net_errors import explain_navigation_error
from envs.suites.open_web import OpenTaskSuite
from tests.envs.browser.browsing import QUICK, Opener, click, visit
from tests.envs.browser.web import Answer, Web
from tests.envs.security.certificates import server_and_authorities

TASK = TaskRef(suite="open", name="task")
NOTHING = 2
"""A port where nothing listens."""


@dataclass(frozen=True)
class Case:
    message: str
    expected: str


MESSAGES = {
    "tunnel of a known cause": Case("net::ERR_TUNNEL_CONNECTION_FAILED at https://a.example/", "no name server"),
    "timeout": Case("Page.goto: Timeout 20000ms exceeded.\nCall log:", "it did not load within 20 s"),
    "expired": Case("net::ERR_CERT_DATE_INVALID at x", "has expired"),
    "another name": Case("net::ERR_CERT_COMMON_NAME_INVALID at x", "for another host name"),
    "some other certificate": Case("net::ERR_CERT_REVOKED at x", "its certificate is not valid"),
    "no TLS": Case("net::ERR_SSL_PROTOCOL_ERROR at x", "does not use TLS"),
    "some other TLS": Case("net::ERR_SSL_UNRECOGNIZED_NAME_ALERT at x", "does not use TLS"),
    "closed": Case("net::ERR_EMPTY_RESPONSE at x", "closed the connection without an answer"),
    "not known here": Case("net::ERR_NEW_AND_STRANGE at x", "ERR_NEW_AND_STRANGE"),
    "no network error": Case("Navigation interrupted by another one", ""),
}


@pytest.mark.parametrize("case", MESSAGES.values(), ids=MESSAGES.keys())
def test_network_errors_in_words(case: Case) -> None:
    reason = explain_navigation_error(case.message, "https://a.example/", {Place("a.example", 443): "no name server"})
    assert case.expected in reason and bool(case.expected) == bool(reason) and "\n" not in reason


def test_where_a_redirect_led_is_named() -> None:
    message = "net::ERR_TUNNEL_CONNECTION_FAILED at https://a.example/"
    reason = explain_navigation_error(message, "https://a.example/", {Place("b.example", 8443): "connection refused"})
    assert reason == "it leads to b.example, port 8443: connection refused"


async def failure(chromium: Chromium, folder: Path, url: str) -> str:
    environment = await OpenTaskSuite(chromium, folder, QUICK, instruction="x", url=url).environment()
    try:
        with pytest.raises(ResetFailed) as failed:
            await environment.reset(TASK)
    finally:
        await environment.close()
    return str(failed.value)


@asynccontextmanager
async def tls_server(context: ssl.SSLContext | None) -> AsyncGenerator[int]:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<p>ok", content_type="text/html")

    app = web.Application()
    app.add_routes([web.get("/", page)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


UNREACHABLE = [
    ("https://nowhere.invalid", "the host name nowhere.invalid does not resolve"),
    ("http://nowhere.invalid", "the host name nowhere.invalid does not resolve"),
    (f"https://127.0.0.1:{NOTHING}", f"connection refused: nothing listens at port {NOTHING}"),
    (f"http://127.0.0.1:{NOTHING}", f"connection refused: nothing listens at port {NOTHING}"),
]


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("url", "expected"), UNREACHABLE, ids=[url for url, _ in UNREACHABLE])
async def test_a_host_that_cannot_be_reached_is_no_tunnel_error(
    guarded: Chromium, tmp_path: Path, url: str, expected: str
) -> None:
    reason = await failure(guarded, tmp_path, url)
    assert reason.startswith(f"{url} could not be opened: ") and expected in reason
    assert "ERR_" not in reason and "--allow" not in reason and "\n" not in reason


@dataclass(frozen=True)
class Certificate:
    name: str
    """Empty: the server speaks no TLS."""
    age: int
    """Days."""
    scheme: str
    expected: str


CERTIFICATES = {
    "unknown authority": Certificate(
        "localhost", 0, "https", "its certificate is signed by no authority that this browser trusts"
    ),
    "expired": Certificate("localhost", 50, "https", "certificate"),
    "another name": Certificate("elsewhere.example", 0, "https", "certificate"),
    "no TLS at all": Certificate(
        "", 0, "https", "the server does not use TLS as browsers do: is it an http:// address?"
    ),
    "TLS at an http address": Certificate("localhost", 0, "http", "the server closed the connection"),
}


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("case", CERTIFICATES.values(), ids=CERTIFICATES.keys())
async def test_what_is_wrong_with_a_certificate_is_reported(
    guarded: Chromium, tmp_path: Path, case: Certificate
) -> None:
    context = server_and_authorities(tmp_path, [case.name], age=timedelta(days=case.age))[0] if case.name else None
    async with tls_server(context) as port:
        reason = await failure(guarded, tmp_path, f"{case.scheme}://localhost:{port}/")
    assert case.expected in reason and "--allow" not in reason, "what Chromium asks for by itself is no page's request"
    assert ("ignore_https_errors = true" in reason) == ("certificate" in case.expected)


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_an_action_of_the_policy_says_why_as_well(opener: Opener, web: Web) -> None:
    session = await opener()
    session.boundary.origins = session.boundary.origins.with_url("https://nowhere.invalid")
    web["/"] = "<p>home</p><a href='https://nowhere.invalid/x'>Go</a><a href='/to'>To</a>"
    web["/to"] = Answer(status=302, headers={"Location": "https://nowhere.invalid/y"})
    await visit(session, web.url())
    typed = await session.execute(Goto(url="https://nowhere.invalid/"))
    assert (typed.status, typed.message.partition(":")[0]) == (
        Status.FAILED,
        "the host name nowhere.invalid does not resolve",
    )
    await visit(session, web.url())
    followed = await click(session, "Go")
    assert "it leads to nowhere.invalid, port 443: the host name nowhere.invalid does not resolve" in followed.message
    await visit(session, web.url())
    assert "nowhere.invalid does not resolve" in (await click(session, "To")).message


DEAD = f"https://127.0.0.1:{NOTHING}/"


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_a_refused_request_of_another_tab_is_not_blamed_for_a_failed_visit(opener: Opener, web: Web) -> None:
    session = await opener()
    session.boundary.origins = session.boundary.origins.with_url(DEAD)
    web["/"] = "<p>page<script src='https://cdn.example/a.js'></script>"
    assert (await session.execute(Goto(url=DEAD))).reason is Reason.NAVIGATION_FAILED
    await session.observe()
    await session.execute(NewTab())
    result = await session.execute(Goto(url=web.url()))
    assert [one.origin for one in result.blocked_requests] == ["https://cdn.example"]
    assert (result.status, result.reason, result.url) == (Status.OK, None, web.url())
    seen = await session.observe()
    assert "page" in seen.text and len(seen.tabs) == 2 and seen.tabs[0].url.startswith("chrome-error:")


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_a_refused_beacon_does_not_hide_that_the_server_is_down(opener: Opener, web: Web) -> None:
    session = await opener()
    session.boundary.origins = session.boundary.origins.with_url(DEAD)
    web["/"] = f"<a href='{DEAD}' onclick=\"navigator.sendBeacon('https://cdn.example/', 'x')\">Go</a>"
    await visit(session, web.url())
    result = await click(session, "Go")
    assert [one.origin for one in result.blocked_requests] == ["https://cdn.example"]
    assert (result.status, result.reason) == (Status.OK, Reason.UNREACHABLE)
    assert f"nothing listens at port {NOTHING}" in result.message


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_a_tab_is_taken_back_from_an_allowed_name_of_this_machine(
    guarded: Chromium, tmp_path: Path, web: Web
) -> None:
    async def here(host: str) -> list[str]:
        return ["127.0.0.1"]

    origins = Origins.parse([web.url().rstrip("/"), "https://inner.example"])
    web["/"] = "<p>home</p><a href='https://inner.example/x'>Go</a>"
    async with AllowlistProxy(origins, resolve=here) as boundary:
        session = await guarded.session(QUICK, boundary, tmp_path)
        await visit(session, web.url())
        result = await click(session, "Go")
        assert (result.status, result.reason, result.url) == (Status.BLOCKED, Reason.ORIGIN_NOT_ALLOWED, web.url())
        assert result.message == "not allowed, taken back: https://inner.example/x"
        await session.close()
