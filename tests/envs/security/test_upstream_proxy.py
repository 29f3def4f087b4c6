"""Sites behind the proxy of a network: what passes it, what does not, and what its refusals say."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.config import RunConfig
from agent.run.environments import check_session
from envs.browser.chromium import Chromium
from envs.browser.live_session import Bounds, LiveSession
from envs.core.errors import BadInput, ResetFailed
from envs.core.plain_values import checked
from envs.core.settings import ProxySettings, SessionSettings
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.proxy_parts import Limits
from envs.security.upstream_proxy import UpstreamProxy, upstream_proxy
from envs.suites.browsergym.environment import BrowserGymEnvironment
from tests.envs.browser.browsing import QUICK
from tests.envs.security.certificates import server_and_authorities
from tests.envs.security.test_allowlist_proxy import ANSWER, Reader, Serve, Writer, answering, get, raw, send_raw
from tests.envs.security.test_subresources import GET, ask, cdn
from tests.envs.security.upstream import upstream

LOGIN = "ann:s3same:open"


async def unresolved(host: str) -> Sequence[str]:
    raise AssertionError(f"{host} was resolved here")


def through(rules: Sequence[str], port: int, login: str | None = None, *bypass: str, **more: Any) -> AllowlistProxy:
    network = UpstreamProxy("127.0.0.1", port, login, Origins.parse(bypass))
    return AllowlistProxy(Origins.parse(rules), resolve=unresolved, upstream=network, **more)


async def test_a_request_reaches_the_site_through_the_proxy_of_the_network() -> None:
    received: list[bytes] = []
    async with (
        raw(answering(received)) as site,
        upstream({"shop.test:80": site.port}, LOGIN) as network,
        through(["shop.test"], network.port, LOGIN) as proxy,
    ):
        reply = await send_raw(proxy, get("http://shop.test/x?q=1", "X-Kept: 1"))
    assert reply.endswith(b"\r\n\r\nok")
    assert network.lines == ["GET http://shop.test/x?q=1 HTTP/1.1"]
    assert b"\r\nHost: shop.test\r\n" in network.heads[0] and b"\r\nx-kept: 1\r\n" in network.heads[0]
    assert len(received) == 1


async def test_a_refused_request_does_not_reach_the_proxy_of_the_network() -> None:
    async with upstream({"evil.test:80": 9}) as network, through(["shop.test"], network.port) as proxy:
        for request in (get("http://evil.test/"), b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n"):
            assert (await send_raw(proxy, request)).startswith(b"HTTP/1.1 403")
    assert network.heads == []


async def test_a_tunnel_passes_unread() -> None:
    async def echo(reader: Reader, writer: Writer) -> None:
        writer.write(await reader.readexactly(4))
        await writer.drain()

    async with (
        raw(echo) as site,
        upstream({"shop.test:443": site.port}, LOGIN) as network,
        through(["shop.test"], network.port, LOGIN) as proxy,
    ):
        reply = await send_raw(proxy, b"CONNECT shop.test:443 HTTP/1.1\r\n\r\n", b"\x16abc")
    assert reply == b"HTTP/1.1 200 Connection established\r\n\r\n\x16abc"
    assert network.lines == ["CONNECT shop.test:443 HTTP/1.1"]


async def test_a_request_that_is_read_gets_tls_of_its_own_inside_the_tunnel(tmp_path: Path) -> None:
    received: list[bytes] = []
    async with cdn(tmp_path, received) as (port, authorities), upstream({"cdn.example:443": port}) as network:
        async with through(["subresources:*"], network.port, authorities=authorities) as proxy:
            reply = await ask(proxy, "cdn.example", 443, GET % (b"image", b""))
        assert reply.endswith(b"ok") and len(received) == 1
        other = server_and_authorities(tmp_path, ["other.example"])[1]
        async with through(["subresources:*"], network.port, authorities=other) as proxy:
            refused = await ask(proxy, "cdn.example", 443, GET % (b"image", b""))
        assert b"its certificate is not valid" in refused and len(received) == 1


async def test_a_web_socket_without_tls_gets_a_tunnel() -> None:
    answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with (
        raw(answering([], answer)) as site,
        upstream({"shop.test:80": site.port}) as network,
        through(["shop.test"], network.port) as proxy,
    ):
        request = get("http://shop.test/live", "Upgrade: websocket", "Connection: Upgrade", close=False)
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.server.rpartition(":")[2]))
        writer.write(request)
        async with asyncio.timeout(60):
            assert (await reader.readline()).startswith(b"HTTP/1.1 101")
        writer.close()
    assert network.lines == ["CONNECT shop.test:80 HTTP/1.1"]


async def test_this_machine_and_named_hosts_are_reached_directly() -> None:
    received: list[bytes] = []

    async def resolve(host: str) -> Sequence[str]:
        return ("127.0.0.1",)

    async with raw(answering(received)) as site, upstream({}) as network:
        hosts = ["127.0.0.1", "localhost", "intern.test"]
        there = UpstreamProxy("127.0.0.1", network.port, bypass=Origins.parse(["*.test"]))
        async with AllowlistProxy(Origins.parse(hosts), resolve=resolve, upstream=there) as proxy:
            for host in hosts:
                assert (await send_raw(proxy, get(f"http://{host}:{site.port}/"))).endswith(b"ok")
    assert len(received) == 3 and network.heads == []


@pytest.mark.parametrize("host", ["127.0.0.1", "169.254.169.254", "192.168.1.1", "[::1]"])
async def test_an_address_in_a_url_is_checked_here(host: str) -> None:
    async with upstream({}) as network, through(["subresources:*"], network.port) as proxy:
        reply = await ask(proxy, host, 443, GET % (b"image", b""))
    assert reply.startswith(b"HTTP/1.1 403") and network.heads == []


@pytest.mark.parametrize(
    ("login", "reason"),
    [
        (None, "requires a name and a password: credentials under [session.proxy]"),
        ("ann:wrong", "does not accept its credentials"),
    ],
)
@pytest.mark.parametrize("request_", [get("http://shop.test/"), b"CONNECT shop.test:443 HTTP/1.1\r\n\r\n"])
async def test_a_wrong_login_is_named(login: str | None, reason: str, request_: bytes) -> None:
    async with upstream({}, LOGIN) as network, through(["shop.test"], network.port, login) as proxy:
        reply = (await send_raw(proxy, request_)).decode()
    assert reply.startswith("HTTP/1.1 502") and reason in reply and "wrong" not in reply


async def test_refusals_and_failures_of_the_network_s_proxy_are_named() -> None:
    tunnel = b"CONNECT shop.test:443 HTTP/1.1\r\n\r\n"

    async def ends(reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async def babbles(reader: Reader, writer: Writer) -> None:
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        await reader.read()

    async def waits(reader: Reader, writer: Writer) -> None:
        await reader.read()

    async with upstream({}) as network, through(["shop.test"], network.port) as proxy:
        assert b"refuses the connection (status 403)" in await send_raw(proxy, tunnel)
    async with raw(ends) as server, through(["shop.test"], server.port) as proxy:
        assert b"closed the connection without an answer" in await send_raw(proxy, tunnel)
    async with raw(babbles) as server, through(["shop.test"], server.port) as proxy:
        assert b"cannot be read: the status line is malformed" in await send_raw(proxy, tunnel)
    async with raw(waits) as server, through(["shop.test"], server.port, limits=Limits(connect_s=0.2)) as proxy:
        assert (await send_raw(proxy, tunnel)).startswith(b"HTTP/1.1 504")
    async with through(["shop.test"], server.port) as proxy:
        for request in (tunnel, get("http://shop.test/")):
            reply = (await send_raw(proxy, request)).decode()
            assert f"the proxy http://127.0.0.1:{server.port} cannot be reached: connection refused" in reply
        assert len(proxy.unreachable) == 2


async def test_a_kept_connection_asks_in_absolute_form_again() -> None:
    heads: list[bytes] = []
    async with raw(answering(heads)) as network, through(["shop.test"], network.port, LOGIN) as proxy:
        reply = await send_raw(proxy, get("http://shop.test/a", close=False), get("http://shop.test/b"))
    assert reply.count(ANSWER[-6:]) == 2 and network.connections == 1
    assert [head.split(b" ")[1] for head in heads] == [b"http://shop.test/a", b"http://shop.test/b"]
    assert all(b"Proxy-Authorization" in head for head in heads)


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_an_unreachable_site_names_the_option_where_the_environment_names_a_proxy(
    guarded: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def begin(live: LiveSession) -> None:
        await live.go_to(["http://shop.invalid/"])

    live = LiveSession(guarded, Bounds(tmp_path, QUICK, Origins.parse(["shop.invalid"])), begin)
    try:
        for value, hint in (("", False), ("http://proxy.example:3128", True)):
            monkeypatch.setenv("HTTPS_PROXY", value)
            with pytest.raises(ResetFailed, match="does not resolve") as failed:
                await live.start()
            assert ("; HTTPS_PROXY is for model calls, for sites use --proxy" in str(failed.value)) is hint
    finally:
        await live.close()


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_the_browser_works_behind_it(guarded: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages over http and https, of hosts that only the network's proxy knows."""
    page = b"<title>Shop</title><button>Buy</button>"
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(page), page)
    context, _ = server_and_authorities(tmp_path, ["bank.test"])
    monkeypatch.setenv("PROXY_LOGIN", LOGIN)

    async def begin(live: LiveSession) -> None:
        await live.go_to(["http://shop.test/", "https://bank.test/"])

    secured = await asyncio.start_server(_web_page(answer), "127.0.0.1", 0, ssl=context)
    try:
        port = secured.sockets[0].getsockname()[1]
        async with raw(answering([], answer)) as site:
            sites = {"shop.test:80": site.port, "bank.test:443": port}
            async with upstream(sites, LOGIN) as network:
                named = ProxySettings(server=network.address, credentials="env:PROXY_LOGIN")
                settings = QUICK.model_copy(update={"proxy": named, "ignore_https_errors": True})
                origins = Origins.parse(["shop.test", "bank.test"])
                live = LiveSession(guarded, Bounds(tmp_path, settings, origins), begin)
                try:
                    await live.start()
                    assert 'button "Buy"' in (await live.observe()).text
                    assert [tab.page.url for tab in live.session.tabs.all] == [
                        "http://shop.test/",
                        "https://bank.test/",
                    ]
                finally:
                    await live.close()
    finally:
        secured.close()
    assert {"GET http://shop.test/ HTTP/1.1", "CONNECT bank.test:443 HTTP/1.1"} <= set(network.lines)


def _web_page(answer: bytes) -> Serve:
    serve = answering([], answer)

    async def handle(reader: Reader, writer: Writer) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    return handle


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ("socks5://proxy.example:1080", "write http://HOST:PORT (no SOCKS proxy, and no proxy behind TLS)"),
        ("https://proxy.example:3128", "write http://HOST:PORT"),
        ("proxy.example:3128", "write http://HOST:PORT"),
        ("http://proxy.example", "write http://HOST:PORT"),
        ("http://ann:hunter22@proxy.example:3128", "set credentials = 'env:NAME' beside it"),
    ],
)
def test_a_wrong_address_is_one_line_without_its_password(server: str, reason: str) -> None:
    with pytest.raises(BadInput) as refused:
        checked(SessionSettings, {"proxy": {"server": server}}, "mira.toml")
    assert reason in str(refused.value) and "hunter22" not in str(refused.value) and "\n" not in str(refused.value)


def test_missing_credentials_are_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROXY_LOGIN", raising=False)
    named = ProxySettings(server="http://proxy.example:3128/", credentials="env:PROXY_LOGIN")
    config = RunConfig(session=SessionSettings(proxy=named))
    with pytest.raises(BadInput, match=r"session\.proxy\.credentials: set PROXY_LOGIN to USER:PASSWORD"):
        check_session(config)
    monkeypatch.setenv("PROXY_LOGIN", LOGIN)
    check_session(config)
    made = upstream_proxy(named)
    assert made is not None and (str(made), made.credentials) == ("http://proxy.example:3128", LOGIN)
    assert LOGIN not in config.model_dump_json()


def test_a_host_that_is_reached_directly_is_so_for_every_request() -> None:
    with pytest.raises(BadInput, match=r"session\.proxy\.bypass: .*: leave out subresources:"):
        upstream_proxy(ProxySettings(server="http://proxy.example:3128", bypass=("subresources:cdn.example",)))


def test_the_environments_on_live_sites_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROXY_LOGIN", raising=False)
    settings = SessionSettings(proxy=ProxySettings(server="http://proxy.example:3128", credentials="env:PROXY_LOGIN"))
    bounds = Bounds(tmp_path, settings, Origins())

    async def begin(_: LiveSession) -> None: ...

    with pytest.raises(BadInput, match="PROXY_LOGIN"):
        LiveSession(Chromium.launch(), bounds, begin)
    with pytest.raises(BadInput, match="PROXY_LOGIN"):
        BrowserGymEnvironment(tmp_path, settings)
