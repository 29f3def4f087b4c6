"""No screenshot shows a declared secret.

Each page draws a value that was typed into it. Two sessions type two values of the same length: the screenshots must be
equal; or the screenshot of a session is withheld. The control types the values without declaring them: the screenshots
differ.
"""

from __future__ import annotations

import asyncio

import pytest

from envs.core.actions import Press
from envs.core.observation import Observation
from envs.security.allowlist import Origins
from envs.security.secrets import SecretVault
from tests.envs.browser.browsing import Opener, type_text, visit
from tests.envs.browser.web import Web
from tests.sampled import sampled

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

VALUES = ("Kestrel7-Quartz", "Plover98Basalts")
NAMED = "<secret>PW</secret>"
PAGE = """<body style="font:20px monospace"><input type=password aria-label=Q id=q><div id=o></div>
<script>q.oninput = () => {{ const v = q.value; {script} }}</script>"""

DRAWN = {
    "aria-hidden": "o.innerHTML = `<p aria-hidden=true>${v}</p>`",
    "a labelled button": "o.innerHTML = `<button aria-label=Show>${v}</button>`",
    "placeholder": "o.innerHTML = '<input aria-label=R>'; o.firstChild.placeholder = v",
    "placeholder of a password": "o.innerHTML = '<input type=password aria-label=R>'; o.firstChild.placeholder = v",
    "value of a button": "o.innerHTML = '<input type=button aria-label=R>'; o.firstChild.value = v",
    "a text area with a label": "o.innerHTML = '<div aria-hidden=true><textarea></textarea></div>';"
    "o.querySelector('textarea').value = v",
    "revealed password": "q.type = 'text'",
    "CSS content": "o.innerHTML = `<style>#o::before {content: '${v}'}</style>`",
    "CSS content of an attribute": "o.dataset.v = v; o.innerHTML = '<style>#o::after {content: attr(data-v)}</style>'",
    "CSS content in upper case": "o.style.textTransform = 'uppercase';"
    "o.innerHTML = `<style>#o::before {content: '${v}'}</style>`",
    "CSS variable": "o.style.setProperty('--v', `'${v}'`);"
    "o.innerHTML = '<style>#o::before {content: var(--v)}</style>'",
    "a list mark": "o.innerHTML = `<ul><li style=\"list-style:'${v} '\">x</ul>`",
    "beyond the budget": "o.innerHTML = '<p>word word</p>'.repeat(3000) +"
    "`<p style='position:absolute;top:60px'>${v}</p>`",
    "in a closed shadow root": "o.attachShadow({mode: 'closed'}).innerHTML = `<p>${v}</p>`",
    "in a frame": "o.innerHTML = `<iframe srcdoc='<p aria-hidden=true>${v}</p>'></iframe>`",
    "in a frame of a data address": "o.innerHTML ="
    "`<iframe src='data:text/html,<p aria-hidden=true>${v}</p>'></iframe>`",
    "in an SVG": "o.innerHTML = `<svg aria-hidden=true><text y=20>${v}</text></svg>`",
    "in an SVG address": 'o.innerHTML = `<img src="data:image/svg+xml,'
    "<svg xmlns='http://www.w3.org/2000/svg' width='300'"
    " height='40'><text y='20'>${v}</text></svg>\">`",
    "in an SVG background": 'o.style.cssText = `height:40px;background:url("data:image/svg+xml;base64,${btoa(`<svg '
    "xmlns='http://www.w3.org/2000/svg' width='300' height='40'><text y='20'>${v}</text></svg>`)}\")`",
    "in a blob": "o.innerHTML = `<img width=300 height=40 src='${URL.createObjectURL(new Blob([`<svg "
    "xmlns='http://www.w3.org/2000/svg'><text y='20'>${v}</text></svg>`], {type: 'image/svg+xml'}))}'>`",
    "on a canvas": "o.innerHTML = '<canvas></canvas>'; const c = o.firstChild.getContext('2d'); c.font = '20px serif';"
    "c.fillText(v, 0, 30)",
    "in a bitmap": "const e = document.createElement('canvas'), c = e.getContext('2d'); c.font = '20px serif';"
    "c.fillText(v, 0, 30); o.innerHTML = `<img src='${e.toDataURL()}'>`",
    "in a bitmap background": "const e = document.createElement('canvas'), c = e.getContext('2d');"
    "c.font = '20px serif'; c.fillText(v, 0, 30); o.style.cssText = `height:99px;background:url(${e.toDataURL()})`",
    "alt of a lost picture": "o.innerHTML = `<img src=/none width=300 height=40 aria-hidden=true alt='${v}'>`",
    "an option": "o.innerHTML = `<div aria-hidden=true><select><option>${v}</select></div>`",
    "reversed": "o.innerHTML = `<p aria-hidden=true>${[...v].reverse().join('')}</p>`",
    "drawn backwards": "o.innerHTML = `<p aria-hidden=true><bdo dir=rtl>${[...v].reverse().join('')}</bdo></p>`",
    "letter by letter": "o.innerHTML = '<p aria-hidden=true></p>';"
    "for (const c of v) o.firstChild.append(Object.assign(document.createElement('i'), {textContent: c}))",
    "letters in a reversed row": "o.innerHTML = '<p aria-hidden=true></p>';"
    "o.firstChild.style.cssText = 'display:flex;flex-direction:row-reverse';"
    "for (const c of [...v].reverse()) o.firstChild.append(Object.assign(document.createElement('b'), {innerText: c}))",
    "base64": "o.innerHTML = `<p aria-hidden=true>${btoa('u:' + v)}</p>`",
}


async def observe(opener: Opener, web: Web, script: str, value: str, *, declared: bool) -> Observation:
    web["/"] = PAGE.format(script=script)
    vault = SecretVault({"PW": (value, Origins.parse([web.url().rstrip("/")]))}) if declared else None
    session = await (opener(vault=vault) if vault is not None else opener())
    await visit(session, web.url())
    assert (await type_text(session, "Q", NAMED if declared else value)).ok
    await session.execute(Press(keys="Tab"))
    await session.page.evaluate("document.activeElement.blur()")
    seen = await session.observe(screenshot=True)
    await session.close()
    return seen


@pytest.mark.parametrize("script", sampled(pytest.param(script, id=name) for name, script in DRAWN.items()))
async def test_a_picture_showed_a_secret_that_the_text_did_not(opener: Opener, web: Web, script: str) -> None:
    seen, *shown = await asyncio.gather(
        observe(opener, web, script, VALUES[0], declared=True),
        *(observe(opener, web, script, value, declared=False) for value in VALUES),
    )
    pictures = [one.screenshot for one in shown]
    assert pictures[0] and pictures[0] != pictures[1], "control: without a declaration the pictures show the value"
    assert seen.screenshot is None and "screenshot left out" in seen.note
    assert VALUES[0] not in repr(seen)


HARMLESS = {
    "a password field": "",
    "in the page's memory": "window.kept = v; sessionStorage.kept = v",
    "not displayed": "o.innerHTML = `<p style='display:none'>${v}</p>`",
    "in a hidden field": "o.innerHTML = `<input type=hidden>`; o.firstChild.value = v",
    "in a script": "o.innerHTML = `<script type=text/plain>${v}</scr` + `ipt>`",
    "another password field": "o.innerHTML = `<input type=password aria-label=R>`; o.firstChild.value = v",
    "a picture of the site": "o.innerHTML = `<img src=/dot.svg width=20 height=20>`",
    "beside an empty canvas": "o.innerHTML = '<canvas hidden></canvas>'",
}


@pytest.mark.parametrize("script", HARMLESS.values(), ids=HARMLESS)
async def test_pictures_that_show_no_secret_are_kept_and_equal(opener: Opener, web: Web, script: str) -> None:
    web["/dot.svg"] = "<svg/>"
    pictures = [(await observe(opener, web, script, value, declared=True)).screenshot for value in VALUES]
    assert pictures[0] is not None and pictures[0] == pictures[1]


async def test_what_cannot_be_searched_is_shown_before_a_secret_was_typed(opener: Opener, web: Web) -> None:
    web["/"] = "<canvas></canvas><input aria-label=Q type=password>"
    session = await opener(vault=SecretVault({"PW": (VALUES[0], Origins.parse([web.url().rstrip("/")]))}))
    await visit(session, web.url())
    assert (await session.observe(screenshot=True)).screenshot is not None
    await type_text(session, "Q", NAMED)
    seen = await session.observe(screenshot=True)
    assert seen.screenshot is None and "a canvas" in seen.note


async def test_frames_of_another_origin_are_searched(opener: Opener, web: Web) -> None:
    """A frame of another port is drawn in the same process, one of another host in its own process."""
    with Web() as other:
        other["/"] = f"<p aria-hidden=true>{VALUES[0]}</p>"
        for host in ("127.0.0.1", "localhost"):
            web["/"] = f"<p>outer</p><iframe src='{other.url('/', host)}'></iframe>"
            scope = Origins.parse([web.url().rstrip("/")])
            for value, hidden in ((VALUES[0], True), (VALUES[1], False)):
                session = await opener(vault=SecretVault({"PW": (value, scope)}), ports=(other.port,))
                session.boundary.origins = Origins.parse([web.url(), other.url(), other.url("/", "localhost")])
                await visit(session, web.url())
                assert ((await session.observe(screenshot=True)).screenshot is None) == hidden, host


async def test_frames_that_are_refused_or_hidden_do_not_cost_the_picture(opener: Opener, web: Web) -> None:
    """An advertisement's frame that the proxy refuses, one that is not displayed, and one that loads late."""
    frames = "<iframe src='http://ads.example/'></iframe><iframe style='display:none' src=/a></iframe>"
    frames += "<iframe loading=lazy style='margin-top:9000px' src=/b></iframe><iframe src='about:blank'></iframe>"
    web["/"] = frames
    session = await opener(vault=SecretVault({"PW": (VALUES[0], Origins.parse([web.url().rstrip("/")]))}))
    await visit(session, web.url())
    seen = await session.observe(screenshot=True)
    assert seen.screenshot is not None, seen.note
