"""A step ends when the page has answered it, by a request, after a timer or behind a spinner, and not later."""

from __future__ import annotations

import asyncio

import pytest

from envs.browser.session import BrowserSession
from envs.core.actions import ActionResult, Click, Press, Reason, Select, Status, Type, Wait
from envs.core.observation import Observation
from envs.core.settings import SettleSettings
from tests.envs.browser.browsing import Opener, click, ref_of, visit
from tests.envs.browser.web import Answer, Gate, Web

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PATIENT = SettleSettings(max_s=20.0)
"""A step that waits for nothing takes twenty seconds."""
IN_TIME_S = 10.0
SHOW = "const show = text => document.querySelector('output').textContent = text;"


async def act(session: BrowserSession, kind: str) -> ActionResult:
    """Uses the control of the page: its button, link, field or drop-down."""
    seen = await session.observe()
    match kind:
        case "click":
            return await session.execute(Click(ref=ref_of(seen, "Go")))
        case "type":
            return await session.execute(Type(ref=ref_of(seen, "Go"), text="par"))
        case "enter":
            return await session.execute(Type(ref=ref_of(seen, "Go"), text="par", enter=True))
        case "select":
            return await session.execute(Select(ref=ref_of(seen, "Go"), option="B"))
        case _:
            await session.page.focus("#go")
            return await session.execute(Press(keys=kind))


FETCHED = "fetch('/data').then(r => r.text()).then(show)"
REQUESTS = {
    "fetch": ("click", f'<button id=go onclick="{FETCHED}">Go</button>'),
    "XMLHttpRequest": (
        "click",
        "<button id=go onclick=\"const x = new XMLHttpRequest(); x.open('GET', '/data'); "
        'x.onload = () => show(x.responseText); x.send()">Go</button>',
    ),
    "a keydown of Enter": ("enter", f"<input id=go aria-label=Go onkeydown=\"event.key === 'Enter' && {FETCHED}\">"),
    "the submit event": (
        "enter",
        f'<form onsubmit="event.preventDefault(); {FETCHED}"><input id=go aria-label=Go><button>Send</button></form>',
    ),
    "two requests in turn": ("click", f"<button id=go onclick=\"fetch('/first').then(() => {FETCHED})\">Go</button>"),
    "a pause between answer and request": (
        "click",
        f"<button id=go onclick=\"fetch('/first').then(() => setTimeout(() => {FETCHED}, 40))\">Go</button>",
    ),
    "a script": (
        "click",
        "<button id=go onclick=\"const s = document.createElement('script'); s.src = '/code'; "
        'document.head.append(s)">Go</button>',
    ),
    "a module": ("click", "<button id=go onclick=\"import('/module')\">Go</button>"),
    "a timer after the last key": (
        "type",
        f'<input id=go aria-label=Go oninput="clearTimeout(window.t); t = setTimeout(() => {FETCHED}, 250)">',
    ),
    "a timer after the last key, listened to at the root": (
        "type",
        f"<input id=go aria-label=Go><script>let t; document.addEventListener('input', () => {{ clearTimeout(t); "
        f"t = setTimeout(() => {FETCHED}, 200) }})</script>",
    ),
    "a timer after Enter": (
        "enter",
        f"<input id=go aria-label=Go onkeyup=\"event.key === 'Enter' && setTimeout(() => {FETCHED}, 200)\">",
    ),
    "a timer after a click": ("click", f'<button id=go onclick="setTimeout(() => {FETCHED}, 200)">Go</button>'),
    "a choice": ("select", f'<select id=go aria-label=Go onchange="{FETCHED}"><option>A<option>B</select>'),
    "a key on a button": ("Enter", f'<button id=go onclick="{FETCHED}">Go</button>'),
    "a frame": ("click", '<button id=go onclick="f.contentWindow.load()">Go</button><iframe id=f src=/frame></iframe>'),
    "a navigation": ("click", "<a id=go href=/page>Go</a>"),
}


@pytest.mark.parametrize("started", REQUESTS)
async def test_a_step_waits_for_the_request_that_it_starts(web: Web, opener: Opener, started: str) -> None:
    # A loaded machine fires a page's timer late.
    settle = PATIENT.model_copy(update={"react_ms": 5_000}) if "timer" in started else PATIENT
    session, gate = await opener(settle=settle), Gate()
    kind, body = REQUESTS[started]
    script = {"Content-Type": "text/javascript"}
    web["/data"] = Answer("arrived", gate=gate)
    web["/first"], web["/page"] = "first", Answer("<p>arrived", gate=gate)
    web["/code"] = web["/module"] = Answer("show('arrived')", headers=script, gate=gate)
    web["/frame"] = "<script>function load() { fetch('/data').then(r => r.text()).then(parent.show) }</script>"
    web["/"] = f"{body}<output></output><script>{SHOW} window.show = show</script>"
    await visit(session, web.url())
    step = asyncio.create_task(act(session, kind))
    assert await asyncio.to_thread(gate.reached.wait, 15)
    assert not step.done()
    gate.open.set()
    assert (await step).ok
    assert "arrived" in (await session.observe()).text


LATER = "setTimeout(() => {{ {0}show('arrived') }}, 600)"
SPIN = "<style>@keyframes s {{ to {{ rotate: 1turn }} }} .x {{ animation: s 1s infinite; width: 9px; height: 9px }}"
WORK = {
    "aria-busy": ("click", "<div id=box>box</div>", "box.ariaBusy = 'true'", "box.ariaBusy = 'false'; "),
    "a progress bar": (
        "click",
        "<div id=box></div>",
        "box.innerHTML = '<progress></progress>'",
        "box.innerHTML = ''; ",
    ),
    "a role": (
        "click",
        "<div id=box></div>",
        "box.innerHTML = '<p role=progressbar>wait</p>'",
        "box.innerHTML = ''; ",
    ),
    "a skeleton": (
        "click",
        "<div id=box></div>",
        "box.innerHTML = '<div class=card-skeleton style=height:9px></div>'.repeat(5)",
        "box.innerHTML = ''; ",
    ),
    "a spinner of a library": (
        "click",
        "<div id=box></div>",
        "box.innerHTML = '<i class=\\'MuiSpinner spinner-border\\' style=\\'display:block;height:9px\\'></i>'",
        "box.innerHTML = ''; ",
    ),
    "an animation without end": (
        "click",
        f"{SPIN}</style><div id=box></div>",
        "box.className = 'x'",
        "box.className = ''; ",
    ),
    "a text": ("click", "<p id=box></p>", "box.textContent = 'Loading…'", "box.textContent = ''; "),
    "a text in another language": ("click", "<p id=box></p>", "box.textContent = 'Suche...'", "box.textContent = ''; "),
    "a disabled button": ("click", "", "go.disabled = true", "go.disabled = false; "),
    "a shadow root": (
        "click",
        "<x-box id=host></x-box><script>host.attachShadow({mode: 'open'}).innerHTML = '<p>box</p>'</script>",
        "host.shadowRoot.querySelector('p').ariaBusy = 'true'",
        "host.shadowRoot.querySelector('p').ariaBusy = 'false'; ",
    ),
    "a frame of the same origin": (
        "click",
        "<iframe id=f srcdoc='<p id=box>box'></iframe>",
        "f.contentDocument.querySelector('p').ariaBusy = 'true'",
        "f.contentDocument.querySelector('p').ariaBusy = 'false'; ",
    ),
}


async def test_a_step_waits_while_the_page_says_that_it_is_at_work(web: Web, opener: Opener) -> None:
    session = await opener(settle=PATIENT)
    early: list[str] = []
    for sign, (kind, body, begin, end) in WORK.items():
        web["/"] = (
            f"{body.replace('{{', '{').replace('}}', '}')}<button id=go>Go</button><output></output><script>{SHOW} "
            f"go.onclick = () => {{ {begin}; {LATER.format(end)} }}</script>"
        )
        await visit(session, web.url())
        result = await act(session, kind)
        assert result.ok and result.seconds < IN_TIME_S, sign
        if "arrived" not in (await session.observe()).text:
            early.append(sign)
    assert early == []


TIMERS = {
    "a click without a sign": ("click", "<button id=go onclick=\"setTimeout(show, 250, 'arrived')\">Go</button>"),
    "a filter": (
        "type",
        "<input id=go aria-label=Go oninput=\"clearTimeout(window.t); t = setTimeout(show, 300, 'arrived')\">",
    ),
    "a filter that marks its field": (
        "type",
        "<input id=go aria-label=Go oninput=\"this.setAttribute('value', this.value); clearTimeout(window.t); "
        "t = setTimeout(show, 300, 'arrived')\">",
    ),
    "Enter": (
        "enter",
        "<input id=go aria-label=Go onkeydown=\"event.key === 'Enter' && setTimeout(show, 200, 'arrived')\">",
    ),
    "a pressed key": ("Enter", "<input id=go aria-label=Go onkeydown=\"setTimeout(show, 200, 'arrived')\">"),
    "a choice listened to at the window": (
        "select",
        "<select id=go aria-label=Go onchange=\"setTimeout(show, 0, 'arrived')\"><option>A<option>B</select>",
    ),
    "a router": (
        "click",
        "<a id=go href=#two>Go</a><script>onhashchange = () => { document.querySelector('output').ariaBusy = 'true'; "
        "document.querySelector('output').textContent = 'next'; setTimeout(() => { "
        "document.querySelector('output').ariaBusy = 'false'; show('arrived') }, 300) }</script>",
    ),
    "a button that is pressed": (
        "click",
        "<button id=go onclick=\"this.className = 'pressed'; setTimeout(show, 200, 'arrived')\">Go</button>",
    ),
    "a button that is called otherwise": (
        "click",
        "<button id=go onclick=\"this.textContent = 'Searching'; setTimeout(show, 200, 'arrived')\">Go</button>",
    ),
    "results that are emptied first": (
        "click",
        "<button id=go onclick=\"old.textContent = ''; setTimeout(show, 200, 'arrived')\">Go</button><p id=old>old</p>",
    ),
    "a window listener": (
        "click",
        "<button id=go>Go</button><script>addEventListener('click', () => setTimeout(show, 250, 'arrived'))</script>",
    ),
}


async def test_a_step_waits_for_what_the_page_delays(web: Web, opener: Opener) -> None:
    session = await opener(settle=PATIENT)
    early: list[str] = []
    for timer, (kind, body) in TIMERS.items():
        web["/"] = f"{body}<output></output><script>{SHOW}</script>"
        await visit(session, web.url())
        result = await act(session, kind)
        assert result.ok and result.seconds < IN_TIME_S, timer
        if "arrived" not in (await session.observe()).text:
            early.append(timer)
    assert early == []


ENDLESS = {
    "an event stream": "new EventSource('/stream')",
    "an event stream by fetch": "fetch('/stream')",
    "an image": "new Image().src = '/held'",
    "a beacon": "navigator.sendBeacon('/held', 'x')",
    "a media file": "document.body.append(Object.assign(document.createElement('video'), {src: '/held'}))",
}


@pytest.mark.parametrize("request_of", ENDLESS)
async def test_a_step_does_not_wait_for_what_may_never_end(web: Web, opener: Opener, request_of: str) -> None:
    session, gate = await opener(settle=PATIENT), Gate()
    web["/stream"] = Answer("data: x\n\ndata: y\n\n", headers={"Content-Type": "text/event-stream"}, gate=gate)
    web["/held"] = Answer("0123456789", headers={"Content-Type": "image/png"}, gate=gate)
    web["/"] = (
        f'<button id=go onclick="{ENDLESS[request_of]}; show(1)">Go</button><output></output><script>{SHOW}</script>'
    )
    await visit(session, web.url())
    result = await act(session, "click")
    assert result.ok and result.seconds < IN_TIME_S and not gate.open.is_set()
    gate.open.set()


async def test_a_request_from_before_the_action_holds_nothing(web: Web, opener: Opener) -> None:
    session, gate = await opener(), Gate()
    web["/poll"] = Answer("0123456789", gate=gate)
    web["/"] = "<script>fetch('/poll')</script><button onclick=\"this.append('!')\">Go</button>"
    await visit(session, web.url())
    assert gate.reached.is_set() and not gate.open.is_set()
    session.effects.settings = session.settings.model_copy(update={"settle": PATIENT})
    result = await click(session, "Go")
    assert result.ok and result.seconds < IN_TIME_S and not gate.open.is_set()
    gate.open.set()


async def test_a_long_poll_that_held_one_step_holds_no_other(web: Web, opener: Opener) -> None:
    session, gate = await opener(settle=SettleSettings(max_s=0.5)), Gate()
    web["/poll"] = Answer("0123456789", gate=gate)
    web["/"] = "<button onclick=\"fetch('/poll?' + Math.random()); this.append('!')\">Go</button>"
    seen = await visit(session, web.url())
    await session.execute(Click(ref=ref_of(seen, "Go")))
    session.effects.settings = session.settings.model_copy(update={"settle": PATIENT})
    seen = await session.observe()
    result = await session.execute(Click(ref=ref_of(seen, "Go!")))
    assert result.ok and result.seconds < IN_TIME_S and not gate.open.is_set()
    gate.open.set()


async def test_a_spinner_that_never_ends_holds_one_step_only(web: Web, opener: Opener) -> None:
    session = await opener(settle=SettleSettings(max_s=0.5))
    web["/"] = (
        "<button onclick=\"box.innerHTML = '<p class=spinner>x</p>'; this.append('!')\">Go</button><div id=box></div>"
    )
    await visit(session, web.url())
    await click(session, "Go")
    session.effects.settings = session.settings.model_copy(update={"settle": PATIENT})
    result = await click(session, "Go!")
    assert result.ok and result.seconds < IN_TIME_S


WAITS = {
    "before the wait": "",
    "during the wait": "await new Promise(done => setTimeout(done, 300)); ",
}


async def waited(session: BrowserSession, change: str, before: str) -> tuple[ActionResult, Observation]:
    await session.observe()
    if before:
        await session.page.evaluate(f"() => {{ (async () => {{ {before}{change} }})() }}")
    else:
        await session.page.evaluate(f"() => {{ {change} }}")
    return await session.execute(Wait()), await session.observe()


@pytest.mark.parametrize("when", WAITS)
async def test_wait_compares_with_what_was_last_seen(web: Web, opener: Opener, when: str) -> None:
    """One page; every change is another kind, made before or during the wait."""
    session = await opener()
    web["/"] = """<title>Old</title><p id=p>text</p><input id=i aria-label=I><input type=checkbox id=c aria-label=C>
        <button id=b>B</button><div id=m hidden>menu</div><x-a id=x></x-a><iframe id=f srcdoc='<p>inner'></iframe>
        <script>x.attachShadow({mode: 'open'}).innerHTML = '<p>shadow</p>'</script>"""
    await visit(session, web.url())
    for change in (
        "p.textContent = 'new'",
        "p.after(Object.assign(document.createElement('a'), {href: '/x', textContent: 'More'}))",
        "i.value = 'filled'",
        "c.checked = true",
        "b.disabled = true",
        "m.hidden = false",
        "p.style.display = 'none'",
        "document.title = 'New'",
        "history.replaceState(null, '', '#new')",
        "x.shadowRoot.querySelector('p').textContent = 'deep'",
        "f.contentDocument.querySelector('p').textContent = 'deep'",
    ):
        result, _ = await waited(session, change, WAITS[when])
        assert (result.status, result.reason) == (Status.OK, None), change
    result = await session.execute(Wait())
    assert result.reason is Reason.NO_EFFECT


async def test_a_clock_is_no_change_to_wait_for(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = (
        "<p id=p></p><script>setInterval(() => p.textContent = new Date().toISOString().slice(11, 19), 50)</script>"
    )
    await visit(session, web.url())
    assert (await session.execute(Wait())).reason is Reason.NO_EFFECT
