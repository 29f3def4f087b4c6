"""Checks of outgoing requests in the proxy: what they receive, and that nothing is sent before they pass."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web

from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.outgoing_requests import BODY_BYTES, MESSAGE, Outgoing
from envs.security.web_sockets import PrefixedReader, pass_messages
from tests.envs.security.certificates import server_and_authorities
from tests.envs.security.test_allowlist_proxy import send_raw


class Server:
    """Counts what arrives: requests with their bodies, and WebSocket messages."""

    def __init__(self) -> None:
        self.port = 0
        self.received: list[tuple[str, str, bytes]] = []
        """(method, path with query, body)"""
        self.arrived = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade") == "websocket":
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self.received.append((MESSAGE, request.path_qs, message.data.encode()))
                    self.arrived.set()
            return socket
        self.received.append((request.method, request.path_qs, await request.read()))
        self.arrived.set()
        return web.Response(text="ok")


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncGenerator[Server]:
    server = Server()
    app = web.Application(client_max_size=10_000_000)
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


class Watching:
    """A check that records its inputs and refuses those that contain one of its words."""

    def __init__(self, *refused: bytes) -> None:
        self.shown: list[Outgoing] = []
        self._refused = refused

    async def __call__(self, sent: Outgoing) -> str:
        self.shown.append(sent)
        text = sent.url.encode() + sent.body
        return next((f"it holds {word!r}" for word in self._refused if word in text), "")


def post(url: str, body: bytes, *fields: str) -> bytes:
    lines = [f"POST {url} HTTP/1.1", "Host: h", f"Content-Length: {len(body)}", *fields, "Connection: close"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


async def inside(proxy: AllowlistProxy, port: int, data: bytes, *, tls: bool = True) -> bytes:
    """Sends *data* inside a tunnel to 127.0.0.1 and returns the reply."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.server.rpartition(":")[2]))
    try:
        writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            await writer.start_tls(context)
        writer.write(data)
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()


async def test_a_request_is_shown_with_its_body_and_sent_as_it_was() -> None:
    watching = Watching()
    async with serving() as server, AllowlistProxy(Origins.parse(["127.0.0.1"])) as proxy:
        proxy.checks.put("test", watching)
        reply = await send_raw(
            proxy, post(f"http://127.0.0.1:{server.port}/a?b=c", b"x=1&y=2", "Sec-Fetch-Dest: empty")
        )
    assert reply.endswith(b"ok")
    (shown,) = watching.shown
    assert (shown.method, shown.url) == ("POST", f"http://127.0.0.1:{server.port}/a?b=c")
    assert (shown.body, shown.is_whole, shown.kind, shown.opens_page) == (b"x=1&y=2", True, "fetch", False)
    assert server.received == [("POST", "/a?b=c", b"x=1&y=2")]


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        (["Sec-Fetch-Mode: navigate"], b"HTTP/1.1 204"),
        (["Upgrade-Insecure-Requests: 1"], b"HTTP/1.1 204"),
        (["Sec-Fetch-Mode: cors", "Upgrade-Insecure-Requests: 1"], b"HTTP/1.1 502"),
        ([], b"HTTP/1.1 502"),
    ],
)
async def test_a_refused_document_leaves_the_page_and_anything_else_is_an_error(
    fields: list[str], answer: bytes
) -> None:
    async with serving() as server, AllowlistProxy(Origins.parse(["127.0.0.1"])) as proxy:
        proxy.checks.put("test", Watching(b"secret"))
        reply = await send_raw(proxy, post(f"http://127.0.0.1:{server.port}/", b"a=secret", *fields))
    assert reply.startswith(answer)
    assert server.received == [] and proxy.refusals == 0


async def test_a_body_in_chunks_is_shown_without_them() -> None:
    watching = Watching()
    async with serving() as server, AllowlistProxy(Origins.parse(["127.0.0.1"])) as proxy:
        proxy.checks.put("test", watching)
        head = (
            f"POST http://127.0.0.1:{server.port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )
        await send_raw(proxy, head.encode() + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")
    assert watching.shown[0].body == b"abcde"
    assert server.received == [("POST", "/", b"abcde")]


@pytest.mark.parametrize("length", [0, 1, BODY_BYTES - 1, BODY_BYTES, BODY_BYTES + 1, 3 * BODY_BYTES])
async def test_of_a_long_body_the_beginning_is_shown_and_all_is_sent(length: int) -> None:
    watching, body = Watching(), b"b" * length
    async with serving() as server, AllowlistProxy(Origins.parse(["127.0.0.1"])) as proxy:
        proxy.checks.put("test", watching)
        await send_raw(proxy, post(f"http://127.0.0.1:{server.port}/", body))
    assert len(watching.shown[0].body) == min(length, BODY_BYTES)
    assert watching.shown[0].is_whole == (length <= BODY_BYTES)
    assert [len(body) for _, _, body in server.received] == [length]


async def test_all_checks_are_asked_until_one_refuses() -> None:
    first, second, third = Watching(), Watching(b"a"), Watching()
    async with serving() as server, AllowlistProxy(Origins.parse(["127.0.0.1"])) as proxy:
        for name, check in (("first", first), ("second", second), ("third", third)):
            proxy.checks.put(name, check)
        await send_raw(proxy, post(f"http://127.0.0.1:{server.port}/", b"a"))
        proxy.checks.put("second", Watching())
        await send_raw(proxy, post(f"http://127.0.0.1:{server.port}/", b"a"))
    assert [len(check.shown) for check in (first, second, third)] == [2, 1, 1]
    assert len(server.received) == 1


@pytest.mark.parametrize("body", [b"x=1", b"x=secret"])
async def test_https_is_read_too(tmp_path: Path, body: bytes) -> None:
    tls, authorities = server_and_authorities(tmp_path, ["127.0.0.1"])
    tls, authorities = _for_addresses(tls, authorities)
    watching = Watching(b"secret")
    rules = Origins.parse(["127.0.0.1"])
    async with serving(tls) as server, AllowlistProxy(rules, authorities=authorities) as proxy:
        proxy.checks.put("test", watching)
        reply = await inside(proxy, server.port, post("/a", body, "Sec-Fetch-Mode: cors"))
    assert watching.shown[0].url == f"https://127.0.0.1:{server.port}/a"
    assert server.received == ([("POST", "/a", body)] if body == b"x=1" else [])
    assert reply.startswith(b"HTTP/1.1 200" if body == b"x=1" else b"HTTP/1.1 502")


def _for_addresses(tls: ssl.SSLContext, authorities: ssl.SSLContext) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The test's certificate names hosts, not addresses."""
    authorities.check_hostname = False
    return tls, authorities


async def test_a_server_whose_certificate_nobody_vouches_for_is_sent_nothing(tmp_path: Path) -> None:
    tls, _ = server_and_authorities(tmp_path, ["127.0.0.1"])
    async with serving(tls) as server, AllowlistProxy(Origins.parse(["127.0.0.1"])) as proxy:
        proxy.checks.put("test", Watching())
        reply = await inside(proxy, server.port, post("/", b"x"))
    assert reply.startswith(b"HTTP/1.1 502") and b"certificate" in reply
    assert server.received == []


async def test_without_a_check_a_tunnel_is_passed_on_unread(tmp_path: Path) -> None:
    tls, _ = server_and_authorities(tmp_path, ["127.0.0.1"])
    async with serving(tls) as server, AllowlistProxy(Origins.parse(["127.0.0.1"])) as proxy:
        reply = await inside(proxy, server.port, post("/", b"x"))
    assert reply.endswith(b"ok") and server.received == [("POST", "/", b"x")]


@pytest.mark.parametrize(("mode", "arrives"), [("no-cors", True), ("cors", False)])
async def test_only_a_beacon_is_sent_though_the_browser_has_gone_meanwhile(mode: str, arrives: bool) -> None:
    """A page that is left sends a beacon without waiting for the response; other requests are cancelled."""
    let_go, ended = asyncio.Event(), asyncio.Event()

    async def check(_: Outgoing) -> str:
        try:
            await let_go.wait()
        finally:
            ended.set()
        return ""

    async with serving() as server, AllowlistProxy(Origins.parse(["127.0.0.1"])) as proxy:
        proxy.checks.put("test", check)
        _, writer = await asyncio.open_connection("127.0.0.1", int(proxy.server.rpartition(":")[2]))
        fields = (f"Sec-Fetch-Mode: {mode}", "Sec-Fetch-Dest: empty")
        writer.write(post(f"http://127.0.0.1:{server.port}/", b"x", *fields))
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        async with asyncio.timeout(60):
            if not arrives:
                await ended.wait()
            let_go.set()
            await (server.arrived.wait() if arrives else ended.wait())
    assert len(server.received) == arrives


HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)


def frame(payload: bytes, opcode: int = 1, *, final: bool = True, key: bytes = b"\x01\x02\x03\x04") -> bytes:
    head = bytes([(0x80 if final else 0) | opcode])
    if len(payload) < 126:
        head += bytes([0x80 | len(payload)])
    elif len(payload) < 65_536:
        head += b"\xfe" + len(payload).to_bytes(2)
    else:
        head += b"\xff" + len(payload).to_bytes(8)
    return head + key + bytes(byte ^ key[place % 4] for place, byte in enumerate(payload))


@pytest.mark.parametrize("secured", [False, True], ids=["ws", "wss"])
async def test_a_message_is_sent_only_after_it_was_checked(tmp_path: Path, secured: bool) -> None:
    tls, authorities = server_and_authorities(tmp_path, ["127.0.0.1"])
    authorities.check_hostname = False
    watching = Watching(b"secret")
    rules = Origins.parse(["127.0.0.1"])
    async with serving(tls if secured else None) as server, AllowlistProxy(rules, authorities=authorities) as proxy:
        proxy.checks.put("test", watching)
        data = HANDSHAKE + frame(b"one") + frame(b"a secret") + frame(b"three")
        reply = await inside(proxy, server.port, data, tls=secured)
        await server.arrived.wait()
    assert b"101 Switching" in reply and b"permessage-deflate" not in reply
    assert server.received == [(MESSAGE, "/ws", b"one")]
    scheme = "https" if secured else "http"
    assert {request.url for request in watching.shown} == {f"{scheme}://127.0.0.1:{server.port}/ws"}
    assert [request.method for request in watching.shown] == ["GET", MESSAGE, MESSAGE]


FRAMES = [
    pytest.param([frame(b"a")], [(b"a", True)], id="one"),
    pytest.param([frame(b"a", final=False), frame(b"b", 0)], [(b"ab", True)], id="in parts"),
    pytest.param([frame(b"a", final=False), frame(b"", 9), frame(b"b", 0)], [(b"ab", True)], id="a ping between"),
    pytest.param([frame(b"x" * 70_000, 2)], [(b"x" * 70_000, True)], id="long"),
    pytest.param([frame(b"y" * (BODY_BYTES + 9)), frame(b"z")], [(b"y" * BODY_BYTES, False), (b"z", True)], id="cut"),
    pytest.param(
        [frame(b"y" * (BODY_BYTES - 1), final=False), frame(b"1234", 0, final=False), frame(b"5", 0), frame(b"z")],
        [(b"y" * (BODY_BYTES - 1) + b"1", False), (b"z", True)],
        id="cut in its second part",
    ),
    pytest.param([frame(b"\x03\xe8", 8)], [], id="closed"),
    pytest.param([frame(b"\x03\xe8delete 5", 8)], [(b"delete 5", True)], id="closed with a text"),
    pytest.param([frame(b"", 1)], [(b"", True)], id="empty"),
]


@pytest.mark.parametrize(("frames", "expected"), FRAMES)
async def test_messages_are_shown_whole_and_passed_on_as_they_came(
    frames: list[bytes], expected: list[tuple[bytes, bool]]
) -> None:
    data, shown, sent = b"".join(frames), [], bytearray()
    reader = asyncio.StreamReader(limit=10_000_000)
    reader.feed_data(data[3:])
    reader.feed_eof()

    async def check(text: bytes, is_whole: bool) -> None:
        shown.append((text, is_whole))

    async def write(block: bytes) -> None:
        sent.extend(block)

    await pass_messages(PrefixedReader(data[:3], reader), write, check, 10_000_000)
    assert shown == expected
    assert bytes(sent) == data or frames == FRAMES[2].values[0], "a ping may overtake the message it stands in"
    assert len(sent) == len(data)
