"""Cases in which a step makes a page send a request, and a server that counts the arrivals."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import WSMsgType, web

from envs.browser.session import BrowserSession
from envs.core.actions import (
    Action,
    ActionResult,
    AnswerDialog,
    Back,
    Click,
    ClickAt,
    CloseTab,
    Drag,
    DragAt,
    FocusTab,
    Goto,
    Hover,
    NewTab,
    Press,
    Scroll,
    ScrollAt,
    Select,
    Type,
    Upload,
    Wait,
)
from envs.core.observation import Observation
from tests.envs.browser.browsing import ref_of

SCRIPT = """
const act = (more = {}) => fetch('/act', {method: 'POST', body: 'a=1', ...more});
const post = () => { const f = document.createElement('form'); f.method = 'post'; f.action = '/act';
  f.innerHTML = '<input name=a value=1>'; document.body.append(f); f.submit(); };
const later = (run, ms) => setTimeout(run, ms);
const blob = text => URL.createObjectURL(new Blob([text], {type: 'text/javascript'}));
const child = (tag, its) => document.body.appendChild(Object.assign(document.createElement(tag), its));
const on = (target, what, run, more) => target.addEventListener(what, run, more);
"""
BUTTON = "<form method=post action=/act><input type=hidden name=a value=1><button>Go</button></form>"
FOCUSED = BUTTON.replace("<button>", "<button id=go>") + "<script>go.focus()</script>"
"""`autofocus` takes effect with a later frame, which on a loaded machine may come after the key."""


class Counting:
    """Serves a page at every path except `/act`. Counts requests to `/act` and WebSocket messages `act`."""

    def __init__(self) -> None:
        self.port = 0
        self.scheme, self.host = "http", "127.0.0.1"
        self.front = ""
        self.acts: list[tuple[str, bytes]] = []
        """(method, body) of the arrivals."""
        self.gets: list[str] = []
        """Paths of all other requests."""
        self.arrived = asyncio.Event()

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}/"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade") == "websocket":
            return await self._socket(request)
        if request.path == "/act":
            self._acted(request.method, await request.read())
            if "file" in request.query:
                return web.Response(text="x", headers={"Content-Disposition": "attachment; filename=a.bin"})
            return page("<title>Done</title><p>Done</p>")
        if request.path == "/again":  # asks for the same body elsewhere
            await request.read()
            return web.Response(status=307, headers={"Location": "/act"})
        self.gets.append(request.path)
        if request.path == "/events":
            return web.Response(text="data: 1\n\n", content_type="text/event-stream")
        if request.path == "/sends-itself":
            return page(f"<body><script>{SCRIPT} post()</script>")
        if request.path == "/reported":
            answer = page("<button onclick=\"new Image().src = '/x.png'\">Go</button>")
            answer.headers["Content-Security-Policy"] = "img-src 'none'; report-uri /act"
            return answer
        body = self.front if request.path == "/front" else "<p>Another page</p>"
        return page(f"<!doctype html><title>T</title><body><script>{SCRIPT}</script>{body}")

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT and message.data == "act":
                self._acted("MESSAGE", b"act")
        if socket.close_code == 4000:
            self._acted("CLOSE", b"")
        return socket

    def _acted(self, method: str, body: bytes) -> None:
        self.acts.append((method, body))
        self.arrived.set()


def page(body: str) -> web.Response:
    return web.Response(text=body, content_type="text/html", headers={"Cache-Control": "no-store"})


@asynccontextmanager
async def counting(tls: ssl.SSLContext | None = None) -> AsyncGenerator[Counting]:
    """Runs the server; with *tls* its host is localhost."""
    server = Counting()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    server.port = runner.addresses[0][1]
    if tls is not None:
        server.scheme, server.host = "https", "localhost"
    try:
        yield server
    finally:
        await runner.cleanup()


Step = Callable[[Observation, Counting], Action]


def on_ref(make: Callable[[int], Action], name: str = "Go") -> Step:
    return lambda seen, _: make(ref_of(seen, name))


def click(name: str = "Go", count: int = 1) -> Step:
    return on_ref(lambda ref: Click(ref=ref, count=count), name)


def always(action: Action) -> Step:
    return lambda _seen, _server: action


def goto(path: str) -> Step:
    return lambda _, server: Goto(url=server.url + path)


def type_in(text: str, name: str = "Go", *, enter: bool = False) -> Step:
    return on_ref(lambda ref: Type(ref=ref, text=text, enter=enter), name)


async def do(session: BrowserSession, server: Counting, steps: Sequence[Step]) -> list[ActionResult]:
    """Executes the steps, none of them approved."""
    results: list[ActionResult] = []
    for step in steps:
        seen = await session.observe()
        session.holding.begin(approved=False)
        results.append(await session.execute(step(seen, server)))
    return results


@dataclass(frozen=True)
class Case:
    """A page and the steps on it, which cause exactly one arrival."""

    name: str
    html: str
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    """Steps that belong to the start, which is another page in this case."""
    method: str = "POST"


def case(name: str, html: str, *steps: Step, before: tuple[Step, ...] = (), method: str = "POST") -> Case:
    return Case(name, html, steps or (click(),), before, method)


def script(code: str, markup: str = "<button>Go</button>") -> str:
    """*code* runs when the page is loaded; `go` is its first button."""
    return f"{markup}<script>const go = document.querySelector('button'); {code}</script>"


def handler(code: str) -> str:
    return script(f"on(go, 'click', () => {{ {code} }})")


TALL = "<div style='height: 4000px'></div>"
MAP = (
    "<img usemap=#m alt=x width=100 height=50 style='position: fixed; left: 0; top: 0' "
    "src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"
)
FIELD = "<input aria-label=Go>"
SUBMITTED = (
    # by the choice of the action
    case("click on a submit button", BUTTON),
    case(
        "type with Enter", "<form method=post action=/act><input name=a aria-label=Go></form>", type_in("1", enter=True)
    ),
    case("drag onto itself", BUTTON, on_ref(lambda ref: Drag(ref=ref, to_ref=ref))),
    case(
        "drag at one point",
        script(
            "go.style.cssText = 'position: fixed; left: 0; top: 0; width: 99px; height: 99px'; "
            "on(go, 'click', () => act())"
        ),
        always(DragAt(x=20, y=20, to_x=20, to_y=20)),
    ),
    case(
        "click at a point",
        script(
            "go.style.cssText = 'position: fixed; left: 0; top: 0; width: 99px; height: 99px'; "
            "on(go, 'click', () => act())"
        ),
        always(ClickAt(x=20, y=20)),
    ),
    case("press Enter", FOCUSED, always(Press(keys="Enter"))),
    case("press a line feed", FOCUSED, always(Press(keys="\n"))),
    case("press a carriage return", FOCUSED, always(Press(keys="\r"))),
    case("press Space", FOCUSED, always(Press(keys="Space"))),
    case("double click", script("on(go, 'dblclick', () => act())"), click(count=2)),
    case(
        "right click", script("on(go, 'contextmenu', () => act())"), on_ref(lambda ref: Click(ref=ref, button="right"))
    ),
    case(
        "middle click", script("on(go, 'auxclick', () => act())"), on_ref(lambda ref: Click(ref=ref, button="middle"))
    ),
    case(
        "select that submits",
        "<form method=post action=/act><select name=a aria-label=Go onchange=form.submit()>"
        "<option>0<option>1</select></form>",
        on_ref(lambda ref: Select(ref=ref, option="1")),
    ),
    case(
        "upload that submits",
        "<form method=post action=/act enctype=multipart/form-data>"
        "<input type=file name=f aria-label=Go onchange=form.submit()></form>",
        on_ref(lambda ref: Upload(ref=ref, path="a.txt")),
    ),
    case(
        "upload by a chooser that submits",
        "<form method=post action=/act enctype=multipart/form-data>"
        "<input type=file id=f name=f hidden onchange=form.submit()></form><button onclick=f.click()>Go</button>",
        on_ref(lambda ref: Upload(ref=ref, path="a.txt")),
    ),
    # by what listens
    case(
        "a name that says More",
        "<div style='cursor: pointer' onclick=act()>More: pay now</div>",
        click("More: pay now"),
    ),
    case("hover", script("on(go, 'mouseenter', () => act())"), on_ref(lambda ref: Hover(ref=ref))),
    case(
        "the end of a transition",
        "<style>button { transition: opacity 50ms } button:hover { opacity: .5 }</style>"
        + script("on(go, 'transitionend', () => act(), {once: true})"),
        on_ref(lambda ref: Hover(ref=ref)),
    ),
    case(
        "select listened to at the root",
        script("on(document, 'change', () => act())", "<select aria-label=Go><option>0<option>1</select>"),
        on_ref(lambda ref: Select(ref=ref, option="1")),
    ),
    case(
        "Tab out of a field",
        script("on(document, 'change', () => act())", FIELD),
        type_in("1"),
        always(Press(keys="Tab")),
    ),
    case("focus by Tab", script("on(document, 'focusin', () => act(), {once: true})"), always(Press(keys="Tab"))),
    case("focus by a click", script("on(document, 'focusin', () => act(), {once: true})", FIELD), click()),
    case("keydown", script("on(window, 'keydown', () => act())"), always(Press(keys="x"))),
    case("input in a field", script("on(window, 'input', () => act())", FIELD), type_in("1")),
    case(
        "copy",
        script("on(document, 'copy', () => act())", "<p>text</p>"),
        always(Press(keys="Control+A")),
        always(Press(keys="Control+C")),
    ),
    case(
        "paste",
        script("on(document, 'paste', () => act())", FIELD),
        type_in("1"),
        always(Press(keys="Control+A")),
        always(Press(keys="Control+C")),
        always(Press(keys="Control+V")),
    ),
    case(
        "drop",
        "<div draggable=true role=button>Go</div><div id=to role=button style='padding: 40px'>Here</div>"
        "<script>on(to, 'dragover', e => e.preventDefault()); on(to, 'drop', () => act())</script>",
        lambda seen, _: Drag(ref=ref_of(seen, "Go"), to_ref=ref_of(seen, "Here")),
    ),
    case("confirm dismissed", handler("if (!confirm('sure?')) act()"), click(), always(AnswerDialog(accept=False))),
    case("confirm accepted", handler("if (confirm('sure?')) act()"), click(), always(AnswerDialog(accept=True))),
    case(
        "scroll", TALL + script("on(document, 'scroll', () => act(), {once: true})"), always(Scroll(direction="down"))
    ),
    case("wheel", TALL + script("on(window, 'wheel', () => act(), {once: true})"), always(ScrollAt(x=9, y=9, dy=300))),
    case(
        "what comes into view",
        TALL
        + "<p id=end>End</p>"
        + script(
            "new IntersectionObserver((e, o) => { if (e[0].isIntersecting) { o.disconnect(); act(); } }).observe(end)"
        ),
        *[always(Scroll(direction="down"))] * 8,
    ),
    case("details that open", "<details ontoggle=act()><summary>Go</summary>x</details>"),
    case("an invalid field", "<form><input required oninvalid=act()><button>Go</button></form>"),
    case("a form that is reset", "<form onreset=act()><button type=reset>Go</button></form>"),
    # by what sends
    case("fetch", handler("act()")),
    case("fetch without CORS", handler("act({mode: 'no-cors'})")),
    case("fetch that outlives its page", handler("act({keepalive: true}); location = '/other'")),
    case("beacon", handler("navigator.sendBeacon('/act', 'a=1')")),
    case("PUT", handler("act({method: 'PUT'})"), method="PUT"),
    case("DELETE", handler("act({method: 'DELETE', body: null})"), method="DELETE"),
    case("PATCH", handler("act({method: 'PATCH'})"), method="PATCH"),
    case("a method of its own", handler("act({method: 'PURGE'})"), method="PURGE"),
    case("XMLHttpRequest", handler("const x = new XMLHttpRequest(); x.open('POST', '/act'); x.send('a=1')")),
    case(
        "XMLHttpRequest that blocks",
        handler("const x = new XMLHttpRequest(); x.open('POST', '/act', false); try { x.send('a=1') } catch {}"),
    ),
    case("a form by script", handler("post()")),
    case(
        "requestSubmit by a label",
        "<form method=post action=/act><input name=a value=1 type=hidden>"
        "<label for=s><span role=button tabindex=0>Go</span></label><input id=s type=submit aria-label=Send></form>",
    ),
    case("an image that submits", "<form method=post action=/act><input type=image alt=Go width=80 height=20></form>"),
    case(
        "an image map",
        MAP + "<map name=m><area alt=Go shape=rect coords=0,0,100,50 href='javascript:act(); void 0'></map>",
        always(ClickAt(x=20, y=20)),
    ),
    case("a form into a frame", "<iframe name=f></iframe>" + BUTTON.replace("<form", "<form target=f")),
    case("a form into a new tab", BUTTON.replace("<form", "<form target=_blank")),
    case("a form by another button", "<form id=f method=post action=/act></form><button form=f>Go</button>"),
    case("formmethod", "<form action=/other><button formmethod=post formaction=/act>Go</button></form>"),
    case("a form that downloads a file", BUTTON.replace("/act", "/act?file")),
    case("a worker", handler("new Worker(blob(`fetch('${location.origin}/act', {method: 'POST'})`))")),
    case("a shared worker", handler("new SharedWorker(blob(`fetch('${location.origin}/act', {method: 'POST'})`))")),
    case(
        "a frame without an address",
        handler("child('iframe', {srcdoc: `<script>fetch('${location.origin}/act', {method: 'POST'})<\\/script>`})"),
    ),
    case(
        "a message between frames",
        "<iframe srcdoc=\"<button onclick=&quot;parent.postMessage('a', '*')&quot;>Go"
        "</button>\"></iframe><script>on(window, 'message', post)</script>",
    ),
    case(
        "a WebSocket that is open",
        "<script>const s = new WebSocket('/ws')</script>" + handler("s.send('act')"),
        method="MESSAGE",
    ),
    case(
        "a WebSocket that is opened",
        handler("const s = new WebSocket('/ws'); s.onopen = () => s.send('act')"),
        method="MESSAGE",
    ),
    case(
        "a WebSocket of a worker",
        handler(
            "const to = location.origin.replace('http', 'ws') + '/ws'; "
            "new Worker(blob(`const s = new WebSocket('${to}'); s.onopen = () => s.send('act')`))"
        ),
        method="MESSAGE",
    ),
    case(
        "the reason of a closed WebSocket",
        "<script>const s = new WebSocket('/ws')</script>" + handler("s.close(4000, 'act')"),
        method="CLOSE",
    ),
    case("a report of the browser's", "", goto("reported"), click()),
    # by when it sends
    case("a timer after the step", handler("later(act, 1500)")),
    case("a timer of the page", "<script>later(act, 2500)</script><p>x</p>", always(Wait())),
    case("a chain of timers", handler("later(() => later(() => later(act, 300), 300), 300)")),
    case(
        "a page that is left by goto",
        script("on(window, 'pagehide', () => navigator.sendBeacon('/act', 'a=1'))"),
        goto("other"),
    ),
    case(
        "a page that is left by back",
        script("on(window, 'pagehide', () => navigator.sendBeacon('/act', 'a=1'))"),
        always(Back()),
        before=(goto("other"), goto("front")),
    ),
    case(
        "a tab that is closed",
        script("on(window, 'pagehide', () => navigator.sendBeacon('/act', 'a=1'))"),
        always(CloseTab()),
    ),
    case(
        "a page that is asked before it is left",
        handler("on(window, 'beforeunload', () => navigator.sendBeacon('/act', 'a=1'))"),
        click(),
        goto("other"),
    ),
    case("a page that sends itself by goto", "", goto("sends-itself")),
    case("a page that sends itself by a link", "<a href=/sends-itself>Go</a>"),
    case("a page that sends itself in a frame", handler("child('iframe', {src: '/sends-itself'})")),
    case("a page that sends itself in an object", handler("child('object', {data: '/sends-itself'})")),
    case("a page that sends itself in an embed", handler("child('embed', {src: '/sends-itself'})")),
    case(
        "a page that sends itself by refresh",
        handler("document.head.innerHTML = `<meta http-equiv=refresh content='0;url=/sends-itself'>`"),
    ),
    case("a page that sends itself in a new tab", handler("open('/sends-itself')")),
    case(
        "another tab",
        handler("open('/other')"),
        click(),
        always(FocusTab(index=0)),
        always(NewTab()),
        goto("sends-itself"),
    ),
    case("a redirect that keeps the method", handler("fetch('/again', {method: 'POST', body: 'a=1'})")),
)
"""Requests that `submit` holds, all from steps that were not approved."""

OPENED = (
    case("goto", "", goto("act"), method="GET"),
    case("a link", "<a href=/act>Go</a>", method="GET"),
    case("a link into a new tab", "<a href=/act target=_blank>Go</a>", method="GET"),
    case("a form by GET", "<form action=/act><button>Go</button></form>", method="GET"),
    case(
        "an image map",
        MAP + "<map name=m><area alt=Go shape=rect coords=0,0,100,50 href=/act></map>",
        always(ClickAt(x=20, y=20)),
        method="GET",
    ),
    case("location", handler("location = '/act'"), method="GET"),
    case("location, late", handler("later(() => location.replace('/act'), 1500)"), method="GET"),
    case("window.open", handler("open('/act')"), method="GET"),
    case("a frame", handler("child('iframe', {src: '/act'})"), method="GET"),
    case("an object", handler("child('object', {data: '/act'})"), method="GET"),
    case("an embed", handler("child('embed', {src: '/act'})"), method="GET"),
    case(
        "a refresh", handler("document.head.innerHTML = `<meta http-equiv=refresh content='0;url=/act'>`"), method="GET"
    ),
    case(
        "a hover",
        script("on(go, 'mouseenter', () => location = '/act')"),
        on_ref(lambda ref: Hover(ref=ref)),
        method="GET",
    ),
    case("a download", "<a href=/act?file download>Go</a>", method="GET"),
    case("a form by POST", BUTTON),
)
"""Requests that `navigation` holds."""
