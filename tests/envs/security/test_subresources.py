"""Subresource rules in the proxy: recognition of passive loads, their targets, and what they carry."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from envs.core.errors import BadInput
from envs.security.allowlist import Origin, Origins, parse_rule
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.secrets import SecretVault
from envs.security.tls_termination import proxy_certificate
from tests.envs.security.certificates import server_and_authorities
from tests.envs.security.test_allowlist_proxy import Reader, Writer, raw, send_raw

ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\nWWW-Authenticate: Basic\r\nX-Kept: 1\r\n"
    b"Connection: close\r\n\r\nok"
)
GET = b"GET /x?q HTTP/1.1\r\nHost: h\r\nSec-Fetch-Dest: %s\r\nConnection: close\r\n%s\r\n"


@pytest.mark.parametrize(
    ("rule", "host", "port", "expected"),
    [
        ("subresources:cdn.example", "cdn.example", 443, "named"),
        ("subresources:cdn.example", "cdn.example", 8443, "named"),
        ("subresources:cdn.example", "www.cdn.example", 443, "no"),
        ("subresources:*.cdn.example", "www.cdn.example", 443, "named"),
        ("subresources:*.cdn.example", "cdn.example", 443, "no"),
        ("subresources:https://cdn.example", "cdn.example", 443, "named"),
        ("subresources:https://cdn.example", "cdn.example", 8443, "no"),
        ("subresources:http://cdn.example", "cdn.example", 80, "no"),
        ("subresources:*", "anything.example", 443, "any"),
        ("subresources:*", "anything.example", 8443, "any"),
        ("subresources:*:8443", "anything.example", 8443, "any"),
        ("subresources:*:8443", "anything.example", 443, "no"),
        ("subresources:*", "localhost", 443, "no"),
        ("subresources:*", "a.localhost", 443, "no"),
        ("subresources:localhost", "localhost", 443, "named"),
        ("cdn.example", "cdn.example", 443, "no"),
    ],
)
def test_rules_for_subresources(rule: str, host: str, port: int, expected: str) -> None:
    origins = Origins.parse([rule])
    assert origins.subresources(Origin("https", host, port)) == expected
    assert origins.has_subresources == rule.startswith("subresources:")
    assert origins.allows(f"https://{host}:{port}/") == (not origins.has_subresources), "no page may be opened there"
    assert origins.allows_tunnel(host, port) == (not origins.has_subresources)
    assert str(parse_rule(str(origins))) == str(origins)


@pytest.mark.parametrize(
    "rule",
    [
        "subresources:",
        "subresources:**",
        "subresources:*.*",
        "subresources:*:0",
        "subresources:*:x",
        "subresources:*/",
        "subresources:https://*",
        "subresources:subresources:a.example",
        "subresource:*",
        "subresources:ftp://a.example",
    ],
)
def test_rules_for_subresources_that_cannot_be_read(rule: str) -> None:
    with pytest.raises(BadInput) as error:
        Origins.parse([rule])
    assert "\n" not in str(error.value)


def test_a_star_alone_is_refused_with_a_suggestion() -> None:
    with pytest.raises(BadInput, match=r"subresources:\* allows passive loads from every public host"):
        parse_rule("*")


def test_a_host_called_subresources_can_still_be_named() -> None:
    assert Origins.parse(["subresources:8080"]).allows("http://subresources:8080/")


def test_a_secret_cannot_be_declared_for_subresources() -> None:
    with pytest.raises(BadInput, match="secret PW: a subresources: rule admits no pages"):
        SecretVault.declare(["PW=env:X@subresources:*"], None, {"X": "hunter2222"})


@asynccontextmanager
async def through_tls(proxy: AllowlistProxy, host: str, port: int) -> AsyncGenerator[tuple[Reader, Writer]]:
    """A tunnel with TLS inside, as Chromium uses it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.server.rpartition(":")[2]))
    writer.write(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
    reply = await reader.readuntil(b"\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 200"), reply
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    await writer.start_tls(context, server_hostname=host)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(proxy: AllowlistProxy, host: str, port: int, request: bytes) -> bytes:
    async with through_tls(proxy, host, port) as (reader, writer), asyncio.timeout(60):
        writer.write(request)
        try:
            return await reader.read(-1)
        except ConnectionError:
            return b""


@asynccontextmanager
async def cdn(
    folder: Path, received: list[bytes], name: str = "cdn.example"
) -> AsyncGenerator[tuple[int, ssl.SSLContext]]:
    """Runs a TLS server; yields its port and the authorities that verify it."""
    server, authorities = server_and_authorities(folder, [name])

    async def serve(reader: Reader, writer: Writer) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server)
    try:
        yield listening.sockets[0].getsockname()[1], authorities
    finally:
        listening.close()


REQUESTS = [
    ("image", GET % (b"image", b""), ""),
    ("script", GET % (b"script", b""), ""),
    ("style", GET % (b"style", b""), ""),
    ("font", GET % (b"font", b""), ""),
    ("video", GET % (b"video", b""), ""),
    ("head", b"HEAD / HTTP/1.1\r\nSec-Fetch-Dest: image\r\nConnection: close\r\n\r\n", ""),
    ("document", GET % (b"document", b""), "document"),
    ("iframe", GET % (b"iframe", b""), "frame"),
    ("object", GET % (b"object", b""), "frame"),
    ("fetch", GET % (b"empty", b""), "fetch"),
    ("worker", GET % (b"worker", b""), "script"),
    ("report", GET % (b"report", b""), "other"),
    ("unknown", GET % (b"teapot", b""), "other"),
    ("none", b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", ""),
    ("two", GET % (b"image", b"Sec-Fetch-Dest: document\r\n"), ""),
    ("list", GET % (b"image, document", b""), ""),
    ("post", b"POST / HTTP/1.1\r\nSec-Fetch-Dest: image\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi", "image"),
    ("get with a body", GET % (b"image", b"Content-Length: 2\r\n") + b"hi", "image"),
    ("options", b"OPTIONS / HTTP/1.1\r\nSec-Fetch-Dest: script\r\nConnection: close\r\n\r\n", "script"),
    ("web socket", GET % (b"image", b"Connection: upgrade\r\nUpgrade: websocket\r\n"), "websocket"),
    ("a tunnel in the tunnel", b"CONNECT cdn.example:443 HTTP/1.1\r\nSec-Fetch-Dest: image\r\n\r\n", None),
    ("an address in the tunnel", b"GET https://evil.example/ HTTP/1.1\r\nSec-Fetch-Dest: image\r\n\r\n", None),
]
PASSING = 6


@pytest.mark.parametrize(("request_", "kind"), [case[1:] for case in REQUESTS], ids=[case[0] for case in REQUESTS])
async def test_only_a_passive_load_leaves_the_tunnel(tmp_path: Path, request_: bytes, kind: str | None) -> None:
    received: list[bytes] = []
    passes = request_ in [case[1] for case in REQUESTS[:PASSING]]
    async with cdn(tmp_path, received) as (port, authorities):
        origins, routes = Origins.parse(["subresources:*"]), {f"https://cdn.example:{port}": ("127.0.0.1", port)}
        async with AllowlistProxy(origins, routes=routes, authorities=authorities) as proxy:
            reply = await ask(proxy, "cdn.example", port, request_)
    assert len(received) == passes
    assert reply.startswith(b"HTTP/1.1 200" if passes else b"HTTP/1.1 4"), reply
    if kind is not None and not passes:
        (count,) = proxy.tally.counts.values()
        assert (count.requests, count.kinds) == (1, {kind} - {""})
        assert "subresources" not in count.allow, "what would admit it is the origin as a whole"


async def test_a_load_carries_no_login_and_brings_none_back(tmp_path: Path) -> None:
    received: list[bytes] = []
    async with cdn(tmp_path, received) as (port, authorities):
        origins, routes = Origins.parse(["subresources:*"]), {f"https://cdn.example:{port}": ("127.0.0.1", port)}
        async with AllowlistProxy(origins, routes=routes, authorities=authorities) as proxy:
            fields = b"Cookie: session=1\r\nAuthorization: Basic eA==\r\nReferer: https://shop.example/\r\n"
            reply = await ask(proxy, "cdn.example", port, GET % (b"image", fields))
    (head,) = received
    assert head.startswith(f"GET /x?q HTTP/1.1\r\nHost: cdn.example:{port}\r\n".encode())
    assert b"cookie" not in head and b"authorization" not in head and b"referer: https://shop.example/" in head
    assert b"Set-Cookie" not in reply and b"set-cookie" not in reply and b"www-authenticate" not in reply
    assert b"x-kept: 1" in reply and reply.endswith(b"\r\n\r\nok")


@pytest.mark.parametrize(
    ("rules", "host", "address", "allow"),
    [
        (["subresources:*"], "cdn.example", "127.0.0.1", "127.0.0.1"),
        (["subresources:*"], "cdn.example", "169.254.169.254", "169.254.169.254"),
        (["subresources:*"], "cdn.example", "::1", "[::1]"),
        (["subresources:*"], "cdn.example", "192.168.1.1", "subresources:https://cdn.example"),
        (["subresources:*"], "cdn.example", "10.0.0.1", "subresources:https://cdn.example"),
        (["subresources:*"], "cdn.example", "100.64.0.1", "subresources:https://cdn.example"),
        (["subresources:*"], "cdn.example", "fd00::1", "subresources:https://cdn.example"),
        (["subresources:*"], "192.168.1.1", "192.168.1.1", "subresources:https://192.168.1.1"),
        (["subresources:*"], "127.0.0.1", "127.0.0.1", "127.0.0.1"),
        (["subresources:cdn.example"], "cdn.example", "127.0.0.1", "127.0.0.1"),
    ],
)
async def test_a_load_is_no_door_to_this_machine_or_the_local_network(
    rules: list[str], host: str, address: str, allow: str
) -> None:
    async def resolve(_: str) -> list[str]:
        return [address]

    async with AllowlistProxy(Origins.parse(rules), resolve=resolve) as proxy:
        reply = await ask(proxy, host, 443, GET % (b"image", b""))
    assert reply.startswith(b"HTTP/1.1 403")
    (count,) = proxy.tally.counts.values()
    assert count.allow == allow


async def test_with_any_host_allowed_localhost_is_still_refused() -> None:
    async with AllowlistProxy(Origins.parse(["subresources:*"])) as proxy:
        for name in ("localhost", "a.localhost"):
            reply = await send_raw(proxy, f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode())
            assert reply.startswith(b"HTTP/1.1 403")


async def test_no_name_is_looked_up_before_a_request_is_known_to_be_a_load() -> None:
    """A name can carry data."""
    lookups: list[str] = []

    async def resolve(host: str) -> list[str]:
        lookups.append(host)
        return ["192.0.2.1"]

    async with AllowlistProxy(Origins.parse(["subresources:*"]), resolve=resolve) as proxy:
        await ask(proxy, "data.evil.example", 443, GET % (b"empty", b""))
        assert lookups == []
        await ask(proxy, "data.evil.example", 443, GET % (b"image", b""))
        assert lookups == ["data.evil.example"]


@pytest.mark.parametrize(
    ("fields", "passes"), [("", False), ("Sec-Fetch-Dest: image", True), ("Sec-Fetch-Dest: document", False)]
)
async def test_plain_http_passes_only_where_the_browser_says_what_it_is_for(fields: str, passes: bool) -> None:
    received: list[bytes] = []

    async def serve(reader: Reader, writer: Writer) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ANSWER)

    async with raw(serve) as server, AllowlistProxy(Origins.parse(["subresources:127.0.0.1"])) as proxy:
        lines = [f"GET http://127.0.0.1:{server.port}/ HTTP/1.1", "Host: x", *([fields] if fields else [])]
        reply = await send_raw(proxy, ("\r\n".join([*lines, "Connection: close", "", ""])).encode())
    assert reply.startswith(b"HTTP/1.1 200" if passes else b"HTTP/1.1 403")
    assert len(received) == passes


async def test_a_tunnel_that_holds_no_tls_is_refused() -> None:
    """A WebSocket without TLS to another port than 80 is recognised only inside the tunnel."""
    async with AllowlistProxy(Origins.parse(["subresources:*"])) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.server.rpartition(":")[2]))
        writer.write(b"CONNECT cdn.example:8080 HTTP/1.1\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
        async with asyncio.timeout(60):
            assert b"HTTP/1.1" not in await reader.read()
        writer.close()
        assert (await send_raw(proxy, b"CONNECT cdn.example:80 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 403")
    assert proxy.refusals == 2


async def test_an_origin_that_is_allowed_as_a_whole_keeps_its_tunnel(tmp_path: Path) -> None:
    """The subresource rule changes nothing: the tunnel is not read, and any request passes."""
    received: list[bytes] = []
    rules = Origins.parse(["localhost", "subresources:*", "subresources:localhost"])
    async with cdn(tmp_path, received, "localhost") as (port, _), AllowlistProxy(rules) as proxy:
        reply = await ask(proxy, "localhost", port, b"POST / HTTP/1.1\r\nContent-Length: 0\r\nCookie: a\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 200") and b"Set-Cookie" in reply
    assert received and received[0].startswith(b"POST / ") and b"Cookie: a" in received[0]


@pytest.mark.parametrize("case", ["unknown authority", "another name"])
async def test_the_server_of_a_load_must_prove_its_name(tmp_path: Path, case: str) -> None:
    received: list[bytes] = []
    name = "cdn.example" if case == "unknown authority" else "other.example"
    async with cdn(tmp_path, received, name) as (port, authorities):
        trusted = None if case == "unknown authority" else authorities
        routes = {f"https://cdn.example:{port}": ("127.0.0.1", port)}
        async with AllowlistProxy(Origins.parse(["subresources:*"]), routes=routes, authorities=trusted) as proxy:
            reply = await ask(proxy, "cdn.example", port, GET % (b"image", b""))
    assert reply.startswith(b"HTTP/1.1 502") and b"certificate" in reply
    assert received == []


def test_the_own_key_is_made_once_and_says_how_it_is_accepted() -> None:
    assert proxy_certificate() is proxy_certificate()
    assert (
        proxy_certificate().switch.startswith("--ignore-certificate-errors-spki-list=")
        and len(proxy_certificate().fingerprint) == 44
    )
