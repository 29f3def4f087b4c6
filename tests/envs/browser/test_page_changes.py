"""Which actions changed nothing on the page, decided from the result and the observations around it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.episode.changed_pages import changed, idle_actions
from envs.browser.session import BrowserSession
from envs.core.actions import Action, Click, Press, Select
from envs.core.past_actions import PastAction
from tests.envs.browser.browsing import Opener, ref_of, visit
from tests.envs.browser.web import Answer, Web

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

DEAD = {
    "no handler": "<button>{}</button>",
    "an empty handler": "<button onclick=''>{}</button>",
    "a handler that throws": "<button onclick='null.x'>{}</button>",
    "a handler that only logs": "<button onclick='console.log(1)'>{}</button>",
    "a prevented link": "<a href=/elsewhere onclick='return false'>{}</a>",
    "a ripple that is gone again": "<button onclick=\"const r = document.createElement('i'); this.append(r); "
    'setTimeout(() => r.remove(), 30)">{}</button>',
    "a ripple that stays": "<button onclick=\"this.append(document.createElement('i'))\">{}</button>",
    "a class that is taken back": "<button onclick=\"this.className = 'on'; "
    "setTimeout(() => this.className = '')\">{}</button>",
    "the same rendered again": "<div onclick='this.innerHTML = this.innerHTML'><button>{}</button></div>",
    "a prevented form": "<form onsubmit='return false'><button>{}</button></form>",
    "a request without effect": "<button onclick=\"fetch('/nothing')\">{}</button>",
    "a custom element": "<x-dead role=button tabindex=0>{}</x-dead>",
    "an area with a pointer": "<div style=cursor:pointer>{}</div>",
    "a hidden text": "<button onclick='hole.textContent += 1'>{}</button>",
    "a clock": "<button onclick='clock.textContent = new Date().toISOString().slice(11, 19)'>{}</button>",
}

LIVE = {
    "a text": "<button onclick=\"out.textContent += 'x'\">{}</button>",
    "a new element": "<button onclick=\"out.after('x')\">{}</button>",
    "the title": "<button onclick=\"document.title += 'x'\">{}</button>",
    "the address": "<button onclick=\"history.pushState(null, '', '#' + Math.random())\">{}</button>",
    "a value": "<button onclick=\"field.value += 'x'\">{}</button>",
    "a checked box": "<button onclick='box.checked = !box.checked'>{}</button>",
    "a state": "<button aria-pressed=false onclick=\"this.ariaPressed = this.ariaPressed !== 'true'\">{}</button>",
    "a class": "<button onclick=\"this.classList.toggle('active')\">{}</button>",
    "a style": "<button onclick=\"this.style.left = Math.random() + 'px'\">{}</button>",
    "the focus": "<button onclick='field.focus()'>{}</button>",
    "the scroll position": "<button onclick='window.scrollBy(0, 10)'>{}</button>",
    "the scroll position of a list": "<button onclick='setTimeout(() => list.scrollTop += 10, 80)'>{}</button>",
    "the clipboard": "<button onclick='copyAnything()'>{}</button>",
    "a drawing": "<canvas role=button aria-label='{}' width=50 height=20></canvas>",
    "a dialog": "<button onclick=\"alert('x')\">{}</button>",
    "a download": "<a href=/file download>{}</a>",
    "a new tab": "<button onclick=\"window.w?.close(); w = open('/other', 'w')\">{}</button>",
    "a frame": "<button onclick=\"f.contentDocument.body.append('x')\">{}</button>",
    "a shadow root": "<button onclick=\"host.shadowRoot.append('x')\">{}</button>",
    "a later text": "<button onclick=\"setTimeout(() => out.textContent += 'x', 150)\">{}</button>",
}
PAGE = """<title>T</title><p id=out>out</p><p id=clock>10:00:00</p><p id=hole hidden></p>
<input id=field aria-label=Field><input type=checkbox id=box aria-label=Box>
<ul id=list style='height:40px;overflow:auto'><li>a<li>b<li>c<li>d<li>e</ul>
<iframe id=f srcdoc='<p>inner'></iframe><x-a id=host></x-a><script>
host.attachShadow({mode: 'open'}).innerHTML = '<p>shadow</p>';
addEventListener('copy', e => { e.clipboardData.setData('text/plain', Math.random()); e.preventDefault() });
const copyAnything = () => document.execCommand('copy')</script>"""


async def outcome(session: BrowserSession, action: Action) -> PastAction:
    """Executes the action after an observation; the page is observed again as the loop does."""
    before = await session.observe()
    past = PastAction(action, None, await session.execute(action))
    return replace(past, changed=changed(past, before, await session.observe()))


def page_of(buttons: dict[str, str]) -> str:
    return PAGE + "".join(f"<p>{html.format(name)}</p>" for name, html in buttons.items()) + "<p style=height:2000px>"


async def test_clicks_that_change_nothing_are_reported(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/nothing"] = Answer("", 204)
    web["/"] = page_of(DEAD)
    await visit(session, web.url())
    seen = {name: await outcome(session, Click(ref=ref_of(await session.observe(), name))) for name in DEAD}
    assert [name for name, past in seen.items() if past.changed is not False] == []
    assert idle_actions(list(seen.values())) == len(DEAD)


async def test_clicks_that_change_something_are_no_false_alarm(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/file"] = Answer("x", headers={"Content-Disposition": "attachment; filename=x.txt"})
    web["/other"] = "<p>other"
    web["/"] = page_of(LIVE)
    quiet: list[str] = []
    for name in LIVE:
        await visit(session, web.url())
        past = await outcome(session, Click(ref=ref_of(await session.observe(), name)))
        if past.changed is not True:
            quiet.append(name)
    assert quiet == []


async def test_keys_and_choices_that_change_nothing_are_reported(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = PAGE + "<select aria-label=S><option>A<option>B</select><p style=height:2000px>"
    await visit(session, web.url())
    for key in ("F8", "Escape", "Shift", "x"):
        assert (await outcome(session, Press(keys=key))).changed is False, key
    for key in ("PageDown", "Tab"):  # the scroll position, the focus
        assert (await outcome(session, Press(keys=key))).changed is True, key
    assert (await outcome(session, Press(keys="x"))).changed is True  # into the focused field
    ref = ref_of(await session.observe(), "S")
    await session.execute(Select(ref=ref, option="A"))
    assert (await outcome(session, Select(ref=ref, option="A"))).changed is False
    assert (await outcome(session, Select(ref=ref, option="B"))).changed is True


async def test_a_change_that_comes_after_the_step_is_seen_at_the_next_observation(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = PAGE + "<button>Dead</button>"
    await visit(session, web.url())
    before = await session.observe()
    result = await session.execute(Click(ref=ref_of(before, "Dead")))
    assert result.change == "no"
    await session.page.evaluate("out.textContent = 'late'")
    assert changed(PastAction(Click(ref=1), None, result), before, await session.observe()) is True


async def test_what_another_tab_did_is_a_change(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<a href=/b target=_blank>Open</a>"
    web["/b"] = "<button onclick=\"opener.document.body.append('x')\">Tell</button><button>Dead</button>"
    await visit(session, web.url())
    web["/"] = "<button onclick=\"window.open('/b')\">Open</button>"
    await visit(session, web.url())
    await session.execute(Click(ref=ref_of(await session.observe(), "Open")))
    assert (await outcome(session, Click(ref=ref_of(await session.observe(), "Tell")))).changed is True
    assert (await outcome(session, Click(ref=ref_of(await session.observe(), "Dead")))).changed is False
