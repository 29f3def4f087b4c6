"""The proxy with well-behaved and hostile clients and servers, at the level of bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import aiohttp
import psutil
import pytest
from aiohttp import web

from envs.security import allowlist_proxy
from envs.security.addresses import Resolve, is_internal, is_public, parse_address
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.blocked_requests import Place
from envs.security.proxy_parts import USUAL_LIMITS, Limits
from tests.timing import HANG_S

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter
Serve = Callable[[Reader, Writer], Awaitable[None]]

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Raw:
    """A server that runs a given handler; counts connections."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.port = 0
        self.connections = 0
        self.arrived = asyncio.Event()
        self.closed = asyncio.Event()

    async def handle(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        self.arrived.set()
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.closed.set()
            writer.close()


@asynccontextmanager
async def raw(serve: Serve, address: str = "127.0.0.1") -> AsyncGenerator[Raw]:
    """Runs `serve` for each connection on *address*."""
    server = Raw(serve)
    listening = await asyncio.start_server(server.handle, address, 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()


@asynccontextmanager
async def running_proxy(
    *rules: str, limits: Limits = USUAL_LIMITS, resolve: Resolve | None = None
) -> AsyncGenerator[AllowlistProxy]:
    async with AllowlistProxy(Origins.parse(rules), limits=limits, resolve=resolve) as proxy:
        yield proxy


async def send_raw(proxy: AllowlistProxy, *parts: bytes) -> bytes:
    """Sends *parts* and returns everything received until the proxy closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.server.rpartition(":")[2]))
    try:
        for part in parts:
            writer.write(part)
        await writer.drain()
        async with asyncio.timeout(60):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def get(url: str, *fields: str, close: bool = True) -> bytes:
    lines = [f"GET {url} HTTP/1.1", "Host: whatever", *fields, *(["Connection: close"] if close else [])]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def answering(received: list[bytes], answer: bytes = ANSWER) -> Serve:
    async def serve(reader: Reader, writer: Writer) -> None:
        while True:
            received.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(answer)
            await writer.drain()

    return serve


async def test_an_allowed_request_arrives_as_the_server_expects_it() -> None:
    received: list[bytes] = []
    async with raw(answering(received)) as server, running_proxy("127.0.0.1") as proxy:
        url = f"http://127.0.0.1:{server.port}?q=1"
        reply = await send_raw(
            proxy, get(url, "Proxy-Authorization: Basic eA==", "X-Odd: \xe9", "Connection: X-Hop", "X-Hop: 1")
        )
    assert reply.startswith(b"HTTP/1.1 200 OK\r\n")
    assert reply.endswith(b"\r\n\r\nok")
    expected = f"GET /?q=1 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: keep-alive\r\n".encode()
    assert received == [expected + b"x-odd: \xe9\r\n\r\n"]
    assert not proxy.blocked


REFUSED = [
    ("another host", get("http://127.0.0.2:PORT/"), 403),
    ("another port", get("http://127.0.0.1:1/"), 403),
    ("credentials", get("http://127.0.0.1:PORT@127.0.0.2:PORT/"), 403),
    ("credentials for the right host", get("http://me:pw@127.0.0.1:PORT/"), 403),
    ("backslash", get("http://127.0.0.2:PORT\\@127.0.0.1:PORT/"), 403),
    ("name", get("http://evil.example/"), 403),
    ("localhost is another name", get("http://localhost:PORT/"), 403),
    ("Host does not decide", get("http://127.0.0.2:PORT/", "Host: 127.0.0.1:PORT"), 403),
    ("origin form", get("/"), 403),
    ("star", get("*"), 403),
    ("https in the clear", get("https://127.0.0.1:PORT/"), 403),
    ("ftp", get("ftp://127.0.0.1:PORT/"), 403),
    ("file", get("file:///etc/passwd"), 403),
    ("scheme-relative", get("//127.0.0.1:PORT/"), 403),
    ("no host", get("http:///x"), 403),
    ("bad port", get("http://127.0.0.1:x/"), 403),
    ("tunnel elsewhere", b"CONNECT 127.0.0.2:PORT HTTP/1.1\r\n\r\n", 403),
    ("tunnel to a name", b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n", 403),
    ("tunnel to another port", b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n", 403),
    ("tunnel without a port", b"CONNECT 127.0.0.1 HTTP/1.1\r\n\r\n", 403),
    ("tunnel with credentials", b"CONNECT x@127.0.0.1:PORT HTTP/1.1\r\n\r\n", 403),
    ("tunnel with a path", b"CONNECT 127.0.0.1:PORT/ HTTP/1.1\r\n\r\n", 403),
    ("tunnel to IPv6", b"CONNECT [::1]:PORT HTTP/1.1\r\n\r\n", 403),
    ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("HTTP/0.9", b"GET http://127.0.0.1:PORT/\r\n\r\n", 400),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
    ("two spaces", b"GET  http://127.0.0.1:PORT/ HTTP/1.1\r\n\r\n", 400),
    ("folded header", get("http://127.0.0.1:PORT/", "X: 1\r\n 2"), 400),
    ("space before colon", get("http://127.0.0.1:PORT/", "X : 1"), 400),
    ("line feed alone", get("http://127.0.0.1:PORT/", "X: 1\nY: 2"), 400),
    ("both lengths", get("http://127.0.0.1:PORT/", "Content-Length: 3", "Transfer-Encoding: chunked"), 400),
    ("two lengths", get("http://127.0.0.1:PORT/", "Content-Length: 3", "Content-Length: 4"), 400),
    ("negative length", get("http://127.0.0.1:PORT/", "Content-Length: -1"), 400),
    ("length in words", get("http://127.0.0.1:PORT/", "Content-Length: 0x3"), 400),
    ("unknown coding", get("http://127.0.0.1:PORT/", "Transfer-Encoding: gzip, chunked"), 400),
    ("head too large", get("http://127.0.0.1:PORT/", "X: " + "x" * 70_000), 431),
]


@pytest.mark.parametrize(("request_", "status"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
async def test_what_is_not_allowed_never_arrives(request_: bytes, status: int) -> None:
    received: list[bytes] = []
    async with raw(answering(received)) as server, running_proxy(f"127.0.0.1:{server.port}") as proxy:
        reply = await send_raw(proxy, request_.replace(b"PORT", str(server.port).encode()))
        assert reply.startswith(b"HTTP/1.1 %d " % status), reply[:200]
        assert received == []
        assert server.connections == 0
        assert proxy.refusals == len(proxy.blocked) == len(proxy.refused) == (status == 403)


async def test_a_body_cannot_be_made_a_request_of_its_own() -> None:
    received: list[bytes] = []

    async def serve(reader: Reader, writer: Writer) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        received.append(head)
        assert b"content-length: 5" in head
        received.append(await reader.readexactly(5))
        writer.write(ANSWER)

    async with raw(serve) as server, running_proxy("127.0.0.1") as proxy:
        url = f"http://127.0.0.1:{server.port}/"
        fields = "Content-Length: 5\r\nConnection: close, content-length"
        reply = await send_raw(proxy, f"POST {url} HTTP/1.1\r\n{fields}\r\n\r\nGET /".encode())
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert received[1] == b"GET /"


async def test_a_second_request_does_not_hide_behind_the_first() -> None:
    received: list[bytes] = []
    async with raw(answering(received)) as server, running_proxy(f"127.0.0.1:{server.port}") as proxy:
        good = get(f"http://127.0.0.1:{server.port}/", close=False)
        reply = await send_raw(proxy, good + good + get("http://evil.example/"))
    assert reply.count(b"HTTP/1.1 200") == 2
    assert reply.count(b"HTTP/1.1 403") == 1
    reason = "no rule allows http://evil.example: if that is intended, use --allow http://evil.example"
    assert proxy.refused == [("http://evil.example", reason)]


async def resolve_to(*addresses: str, lookups: list[str] | None = None) -> Callable[[str], Awaitable[list[str]]]:
    async def resolve(host: str) -> list[str]:
        if lookups is not None:
            lookups.append(host)
        return list(addresses)

    return resolve


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "169.254.169.254", "0.0.0.0", "::1", "::ffff:127.0.0.1", "fe80::1", "224.0.0.1"),
        *("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42"),
        *("64:ff9b::a9fe:a9fe", "64:ff9b::127.0.0.1", "64:ff9b:1::a9fe:a9fe", "::ffff:100.100.100.200", "::127.0.0.1"),
        *("2002:a9fe:a9fe::1", "2002:7f00:1::", "64:ff9b::168.63.129.16"),
    ],
)
async def test_an_allowed_name_is_no_door_to_this_machine(address: str) -> None:
    received: list[bytes] = []
    resolve = await resolve_to(address)
    async with raw(answering(received)) as server, running_proxy("shop.example", resolve=resolve) as proxy:
        reply = await send_raw(proxy, get(f"http://shop.example:{server.port}/"))
        assert reply.startswith(b"HTTP/1.1 403 ")
        assert received == []
        assert proxy.blocked == [f"http://shop.example:{server.port}"]
        assert "resolves to" in proxy.refused[0].reason


def own_addresses() -> list[str]:
    """The addresses of this machine's interfaces that are not loopback or link-local."""
    found = [
        entry.address for entries in psutil.net_if_addrs().values() for entry in entries if "%" not in entry.address
    ]
    addresses = [address for text in found if (address := parse_address(text)) is not None]
    return [str(each) for each in addresses if not (each.is_loopback or each.is_link_local)]


@pytest.mark.skipif(not own_addresses(), reason="no interface has an address of its own")
async def test_an_allowed_name_does_not_lead_to_an_interface_of_this_machine() -> None:
    for address in own_addresses():
        received: list[bytes] = []
        resolve = await resolve_to(address)
        bare = f"[{address}]" if ":" in address else address
        async with raw(answering(received), address) as server:
            async with running_proxy("shop.example", resolve=resolve) as proxy:
                reply = await send_raw(proxy, get(f"http://shop.example:{server.port}/"))
                assert reply.startswith(b"HTTP/1.1 403 ") and f"allow {bare} too".encode() in reply
            assert server.connections == 0
            async with running_proxy("shop.example", bare, resolve=resolve) as proxy:
                for host in ("shop.example", bare):
                    reply = await send_raw(proxy, get(f"http://{host}:{server.port}/"))
                    assert reply.startswith(b"HTTP/1.1 200 "), "the user has named the address"
        assert len(received) == 2


@pytest.mark.parametrize(
    ("address", "internal", "public"),
    [
        ("10.0.0.1", False, False),
        ("192.168.7.7", False, False),
        ("64:ff9b::10.0.0.1", False, False),
        ("2002:0a00:0001::1", False, False),
        ("93.184.215.14", False, True),
        ("2606:4700::1111", False, True),
        ("64:ff9b::93.184.215.14", False, True),
        ("64:ff9b::a9fe:a9fe", True, False),
    ],
)
def test_an_address_is_judged_by_what_it_leads_to(address: str, internal: bool, public: bool) -> None:
    parsed = parse_address(address)
    assert parsed is not None
    assert (is_internal(parsed), is_public(parsed)) == (internal, public)


async def test_a_local_name_works_once_its_address_is_allowed_too() -> None:
    received: list[bytes] = []
    lookups: list[str] = []
    resolve = await resolve_to("127.0.0.1", lookups=lookups)
    async with raw(answering(received)) as server, running_proxy("dev.example", "127.0.0.1", resolve=resolve) as proxy:
        assert (await send_raw(proxy, get(f"http://dev.example:{server.port}/"))).startswith(b"HTTP/1.1 200 ")
        await send_raw(proxy, get("http://evil.example/"))
    assert lookups == ["dev.example"], "a forbidden name must not even be looked up"


async def test_localhost_is_this_machine_without_a_look_up() -> None:
    received: list[bytes] = []
    async with raw(answering(received)) as server, running_proxy("*.localhost") as proxy:
        assert (await send_raw(proxy, get(f"http://shop.localhost:{server.port}/"))).startswith(b"HTTP/1.1 200 ")


async def test_one_proxy_does_not_connect_to_another() -> None:
    async with running_proxy("127.0.0.1") as inner, running_proxy("127.0.0.1") as outer:
        port = int(inner.server.rpartition(":")[2])
        reply = await send_raw(outer, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert reply.startswith(b"HTTP/1.1 403 ")
        assert "allowlist proxy of a run" in outer.refused[0].reason


async def test_connections_are_kept_and_used_again() -> None:
    received: list[bytes] = []
    async with raw(answering(received)) as server, running_proxy("127.0.0.1") as proxy:
        url = f"http://127.0.0.1:{server.port}/"
        reply = await send_raw(proxy, get(url, close=False), get(url, close=False), get(url))
    assert reply.count(b"HTTP/1.1 200") == 3
    assert server.connections == 1


async def test_a_kept_connection_that_died_is_replaced_but_nothing_is_sent_twice() -> None:
    received: list[bytes] = []

    async def one_reply(reader: Reader, writer: Writer) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ANSWER)

    post = b"POST URL HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
    async with raw(one_reply) as server, running_proxy("127.0.0.1") as proxy:
        url = f"http://127.0.0.1:{server.port}/"
        await send_raw(proxy, get(url, close=False), get(url, close=False), post.replace(b"URL", url.encode()))
    assert [line.split()[0] for line in received] == [b"GET", b"GET", b"POST"]


async def test_a_post_whose_answer_is_lost_is_not_repeated() -> None:
    received: list[bytes] = []

    async def silent(reader: Reader, writer: Writer) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n"))

    async with raw(silent) as server, running_proxy("127.0.0.1") as proxy:
        request = f"POST http://127.0.0.1:{server.port}/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n".encode()
        reply = await send_raw(proxy, request)
    assert reply.startswith(b"HTTP/1.1 502 ")
    assert len(received) == 1


BODIES = [
    ("length", b"POST /x HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    (
        "chunks",
        b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\nT: 1\r\n\r\n",
        b"hello",
    ),
]


@asynccontextmanager
async def application() -> AsyncGenerator[int]:
    """A small real site: echo, stream, WebSocket, and answers without a body."""

    go = asyncio.Semaphore(0)

    async def released(_: web.Request) -> web.Response:
        go.release()
        return web.Response()

    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(3):
            await response.write(b"tick")
            await go.acquire()
        return response

    async def socket(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        async for message in ws:
            await ws.send_str(str(message.data).upper())
        return ws

    async def status(request: web.Request) -> web.Response:
        return web.Response(status=int(request.match_info["code"]))

    async def big(_: web.Request) -> web.Response:
        return web.Response(body=b"x" * 3_000_000)

    app = web.Application(client_max_size=10_000_000)
    app.router.add_route("*", "/x", echo)
    app.add_routes([web.get("/stream", stream), web.get("/ws", socket), web.get("/big", big)])
    app.router.add_route("*", "/status/{code}", status)
    app.router.add_post("/go", released)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(("request_", "body"), [case[1:] for case in BODIES], ids=[case[0] for case in BODIES])
async def test_request_bodies_arrive_whole(request_: bytes, body: bytes) -> None:
    async with application() as port, running_proxy("127.0.0.1") as proxy:
        absolute = request_.replace(b" /x", b" http://127.0.0.1:%d/x" % port)
        reply = await send_raw(proxy, absolute, get(f"http://127.0.0.1:{port}/status/204"))
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert body in reply
    assert b"HTTP/1.1 204 " in reply


async def test_a_real_client_sees_the_site_as_it_is() -> None:
    async with application() as port, running_proxy("127.0.0.1") as proxy, aiohttp.ClientSession() as client:
        url = f"http://127.0.0.1:{port}"
        async with client.get(f"{url}/big", proxy=proxy.server) as response:
            assert len(await response.read()) == 3_000_000
        for code in (204, 304, 404):
            async with client.get(f"{url}/status/{code}", proxy=proxy.server) as response:
                assert response.status == code
        async with client.head(f"{url}/x", proxy=proxy.server) as response:
            assert response.status == 200
        async with client.post(f"{url}/x", data=b"y" * 2_000_000, proxy=proxy.server) as response:
            assert len(await response.read()) == 2_000_000


async def test_a_stream_is_passed_on_as_it_comes() -> None:
    async with application() as port, running_proxy("127.0.0.1") as proxy, aiohttp.ClientSession() as client:
        url = f"http://127.0.0.1:{port}"
        async with asyncio.timeout(60), client.get(f"{url}/stream", proxy=proxy.server) as response:
            for _ in range(3):
                assert await response.content.readexactly(4) == b"tick"
                await client.post(f"{url}/go", proxy=proxy.server)
            assert await response.content.read() == b""


async def test_web_sockets_pass_with_and_without_a_tunnel() -> None:
    async with application() as port, running_proxy("127.0.0.1") as proxy, aiohttp.ClientSession() as client:
        async with client.ws_connect(f"http://127.0.0.1:{port}/ws", proxy=proxy.server) as ws:
            await ws.send_str("hello")
            assert await ws.receive_str(timeout=HANG_S) == "HELLO"
        reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.server.rpartition(":")[2]))
        writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.write(b"GET /status/404 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"404" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HANG_S)
        writer.close()


BAD_ANSWERS = [
    ("silence", b""),
    ("no HTTP", b"hello\r\n\r\n"),
    ("cut head", b"HTTP/1.1 200 OK\r\nX: 1\r\n"),
    ("both lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok"),
    ("two lengths", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"),
    ("asks for the proxy's password", b"HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"),
    ("endless head", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000),
]


@pytest.mark.parametrize("answer", [case[1] for case in BAD_ANSWERS], ids=[case[0] for case in BAD_ANSWERS])
async def test_an_ambiguous_response_is_a_502(answer: bytes) -> None:
    async def serve(reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with raw(serve) as server, running_proxy("127.0.0.1") as proxy:
        reply = await send_raw(proxy, get(f"http://127.0.0.1:{server.port}/"))
    assert reply.startswith(b"HTTP/1.1 502 "), reply[:100]
    assert not proxy.blocked


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ncut",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n",
    ],
)
async def test_a_cut_answer_is_never_passed_off_as_whole(answer: bytes) -> None:
    async def serve(reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with raw(serve) as server, running_proxy("127.0.0.1") as proxy, aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.ClientError):
            async with client.get(f"http://127.0.0.1:{server.port}/", proxy=proxy.server) as response:
                await response.read()


async def forever(reader: Reader, writer: Writer) -> None:
    await reader.read(-1)


async def dripping(reader: Reader, writer: Writer) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0)


@pytest.mark.parametrize("serve", [forever, dripping])
async def test_a_server_that_never_ends_is_ended(serve: Serve) -> None:
    limits = Limits(exchange_s=0.3)
    async with raw(serve) as server, running_proxy("127.0.0.1", limits=limits) as proxy:
        async with asyncio.timeout(60):
            await send_raw(proxy, get(f"http://127.0.0.1:{server.port}/"))
            assert await server.closed.wait()


async def test_a_name_that_never_resolves_is_a_504() -> None:
    async def hang(host: str) -> list[str]:
        await asyncio.Event().wait()
        return []

    async with running_proxy("shop.example", limits=Limits(connect_s=0.1), resolve=hang) as proxy:
        assert (await send_raw(proxy, get("http://shop.example/"))).startswith(b"HTTP/1.1 504 ")


async def test_an_unreachable_server_is_a_502() -> None:
    async with running_proxy("127.0.0.1") as proxy:
        assert (await send_raw(proxy, get("http://127.0.0.1:1/"))).startswith(b"HTTP/1.1 502 ")


async def test_bodies_and_connections_have_limits() -> None:
    limits = Limits(body_bytes=10, connections=1)
    async with application() as port, running_proxy("127.0.0.1", limits=limits) as proxy:
        url = f"http://127.0.0.1:{port}"
        post = f"POST {url}/x HTTP/1.1\r\nContent-Length: 11\r\n\r\nhello world".encode()
        assert (await send_raw(proxy, post)).startswith(b"HTTP/1.1 431 ")
        assert b"xxx" not in await send_raw(proxy, get(f"{url}/big"))
        _, idle = await asyncio.open_connection("127.0.0.1", int(proxy.server.rpartition(":")[2]))
        assert (await send_raw(proxy, get(f"{url}/x"))).startswith(b"HTTP/1.1 503 ")
        idle.close()


@pytest.mark.parametrize("kind", ["forward", "tunnel"])
async def test_when_the_browser_gives_up_the_server_is_let_go(kind: str) -> None:
    limits = Limits(linger_s=0.1)
    async with raw(forever) as server, running_proxy("127.0.0.1", limits=limits) as proxy:
        _, writer = await asyncio.open_connection("127.0.0.1", int(proxy.server.rpartition(":")[2]))
        head = get(f"http://127.0.0.1:{server.port}/")
        if kind == "tunnel":
            head = f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n\r\n".encode()
        writer.write(head)
        async with asyncio.timeout(60):
            await server.arrived.wait()
            writer.close()
            assert await server.closed.wait()


async def test_closing_ends_everything() -> None:
    async with raw(forever) as server:
        async with running_proxy("127.0.0.1") as proxy:
            asking = asyncio.create_task(send_raw(proxy, get(f"http://127.0.0.1:{server.port}/")))
            await server.arrived.wait()
        async with asyncio.timeout(60):
            await asking
            await server.closed.wait()
        await proxy.close()
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", int(proxy.server.rpartition(":")[2]))


async def test_the_rule_that_would_admit_an_internal_name_is_reported() -> None:
    """The name itself is allowed already; a rule for it would admit nothing more."""
    async with running_proxy("dev.example", resolve=await resolve_to("127.0.0.1")) as proxy:
        await send_raw(proxy, get("http://dev.example:81/"))
    (count,) = proxy.tally.counts.values()
    assert (count.origin, count.allow, count.requests) == ("http://dev.example:81", "127.0.0.1", 1)


async def test_no_rule_admits_an_own_proxy() -> None:
    async with running_proxy("127.0.0.1") as inner, running_proxy("127.0.0.1") as outer:
        await send_raw(outer, f"CONNECT 127.0.0.1:{inner.server.rpartition(':')[2]} HTTP/1.1\r\n\r\n".encode())
    (count,) = outer.tally.counts.values()
    assert count.allow == ""


async def test_places_without_end_are_counted_together() -> None:
    async with running_proxy() as proxy:
        for number in range(1_100):
            proxy.tally.add(Place(f"h{number}.example", 80), f"http://h{number}.example", "x", "image")
    assert len(proxy.tally.counts) == 1_001
    assert proxy.tally.counts[Place("*", 0)].requests == 100


async def test_refusals_without_end_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowlist_proxy, "MAX_RECORDED", 3)
    async with running_proxy() as proxy:
        for _ in range(5):
            await send_raw(proxy, get("http://evil.example/"))
        assert proxy.refusals == 5
        assert len(proxy.blocked) == len(proxy.refused) == 3
