"""Every kind of action on real pages in real Chromium; the effects are read from the page or its server."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envs.browser.session import BrowserSession
from envs.core.actions import (
    AFTER_LAST_STEP,
    Back,
    Click,
    ClickAt,
    Download,
    Drag,
    DragAt,
    Expand,
    Find,
    Forward,
    Goto,
    Press,
    Reason,
    Scroll,
    ScrollAt,
    Status,
    Stop,
    Type,
    Wait,
)
from envs.core.settings import Geolocation, Viewport
from tests.envs.browser.browsing import (
    Opener,
    click,
    hover,
    ref_of,
    select,
    type_text,
    upload,
    visit,
)
from tests.envs.browser.web import Answer, Gate, Web
from tests.timing import HANG_S, Bound

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

EVENTS = """<script>
const log = [];
const kinds = ['click', 'dblclick', 'contextmenu', 'keydown', 'input', 'change', 'mouseover', 'submit'];
for (const kind of kinds)
  addEventListener(kind, e => log.push([kind, e.target.id || '', e.isTrusted, e.key || e.data || '']), true);
</script>"""


async def events(session: BrowserSession) -> list[list[Any]]:
    return json.loads(await session.page.evaluate("JSON.stringify(log)"))


async def kinds(session: BrowserSession) -> list[str]:
    return [kind for kind, *_ in await events(session)]


async def value(session: BrowserSession, selector: str) -> Any:
    return await session.page.evaluate("s => document.querySelector(s).value", selector)


async def test_clicks_are_real(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = f"{EVENTS}<button id=b>Go</button>"
    await visit(session, web.url())
    assert (await click(session, "Go")).status is Status.OK
    assert (await click(session, "Go", count=2)).status is Status.OK
    assert (await click(session, "Go", button="right")).status is Status.OK
    seen = [e for e in await events(session) if e[0] in ("click", "dblclick", "contextmenu")]
    assert [kind for kind, *_ in seen] == ["click", "click", "click", "dblclick", "contextmenu"]
    assert all(trusted and target == "b" for _, target, trusted, _ in seen)


async def test_typing_fires_key_and_input_events(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = f"{EVENTS}<form onsubmit='return false'><input id=n aria-label=Name value=old></form>"
    await visit(session, web.url())
    assert (await type_text(session, "Name", "né w", enter=True)).status is Status.OK
    assert await value(session, "#n") == "né w"
    happened = await kinds(session)
    assert happened.count("input") == 1 + len("né w")  # the deletion, then key by key
    assert "keydown" in happened and happened[-1] == "submit"
    await type_text(session, "Name", "!", clear=False)
    assert await value(session, "#n") == "né w!"
    await type_text(session, "Name", "")
    assert await value(session, "#n") == ""


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("<textarea id=f aria-label=F>old</textarea>", "one\ntwo", "one\ntwo"),
        ("<input id=f aria-label=F>", "one\ntwo", "one two"),
        ("<input id=f aria-label=F type=email value=a@b.c>", "x@y.z", "x@y.z"),
        ("<input id=f aria-label=F type=number value=3>", "42", "42"),
        ("<input id=f aria-label=F type=date>", "2024-02-29", "2024-02-29"),
        ("<input id=f aria-label=F type=time>", "13:37", "13:37"),
        ("<input id=f aria-label=F type=range min=0 max=100>", "70", "70"),
        ("<input id=f aria-label=F type=color>", "#ff8800", "#ff8800"),
        ("<input id=f aria-label=F>", "ж" * 300, "ж" * 300),
        ("<input id=f aria-label=F>", '"quoted" <b> \\ \u2028 😀', '"quoted" <b> \\ \u2028 😀'),
    ],
)
async def test_what_is_typed_is_what_the_field_holds(
    web: Web, opener: Opener, field: str, text: str, expected: str
) -> None:
    session = await opener()
    web["/"] = field
    await visit(session, web.url())
    assert (await type_text(session, "F", text)).status is Status.OK
    assert await value(session, "#f") == expected


async def test_typing_into_editable_text(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<div id=d contenteditable aria-label=Note role=textbox>old <b>text</b></div>"
    await visit(session, web.url())
    await type_text(session, "Note", "new")
    assert await session.page.evaluate("d.textContent") == "new"
    await type_text(session, "Note", "er", clear=False)
    assert await session.page.evaluate("d.textContent") == "newer"


async def test_fields_that_take_no_text_say_so(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<input aria-label=R readonly value=x><input aria-label=D disabled><input type=date aria-label=W>"
    await visit(session, web.url())
    assert (await type_text(session, "R", "y")).status is Status.NOT_ACTIONABLE
    assert (await type_text(session, "D", "y")).status is Status.DISABLED
    assert (await type_text(session, "W", "yesterday")).status is Status.NOT_ACTIONABLE


async def test_select(web: Web, opener: Opener) -> None:
    session = await opener()
    options = "<option value=s>Small<option value=m> Medium\n size<option value=x disabled>Gone"
    web["/"] = f"{EVENTS}<select id=s aria-label=Size>{options}</select><button>No list</button>"
    await visit(session, web.url())
    assert (await select(session, "Size", "Medium size")).status is Status.OK
    assert await value(session, "#s") == "m"
    assert (await kinds(session))[-2:] == ["input", "change"]
    assert (await select(session, "Size", "s")).status is Status.OK
    assert await value(session, "#s") == "s"
    missing = await select(session, "Size", "Huge")
    assert missing.status is Status.FAILED
    assert "'Small', 'Medium size'" in missing.message and "Gone" not in missing.message
    gone = await select(session, "Size", "Gone")
    assert (gone.status, gone.message) == (Status.DISABLED, "this option is disabled: choose another")
    assert (await select(session, "No list", "x")).status is Status.NOT_ACTIONABLE


async def test_select_of_a_group(web: Web, opener: Opener) -> None:
    session = await opener()
    groups = (
        "<optgroup label=Italy><option value=1>Fast</optgroup><optgroup label=Spain><option value=2>Fast<option>Slow"
    )
    web["/"] = f"<select id=s aria-label=Ship><option value=0>None{groups}</select>"
    await visit(session, web.url())
    for option, chosen in (("Spain: Fast", "2"), ("Fast", "1"), ("Spain: Slow", "Slow"), ("2", "2")):
        assert (await select(session, "Ship", option)).status is Status.OK
        assert await value(session, "#s") == chosen
    missing = await select(session, "Ship", "Slower")
    assert "'None', 'Italy: Fast', 'Spain: Fast', 'Slow'" in missing.message


async def test_a_list_that_takes_several_keeps_what_is_chosen(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<select multiple id=s aria-label=L><option>a<option>b<option>c</select>"
    await visit(session, web.url())
    await select(session, "L", "a")
    await select(session, "L", "c")
    assert await session.page.evaluate("[...s.selectedOptions].map(o => o.text)") == ["a", "c"]


async def test_hover_and_press(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = f"{EVENTS}<button id=b>Menu</button><input id=n aria-label=N value=abc>"
    await visit(session, web.url())
    await hover(session, "Menu")
    assert ["mouseover", "b", True, ""] in await events(session)
    await click(session, "N")
    assert (await session.execute(Press(keys="Control+A"))).status is Status.OK
    await session.execute(Press(keys="Backspace"))
    assert await value(session, "#n") == ""
    await session.execute(Press(keys="x"))
    assert (await session.execute(Press(keys="ctrl+a"))).status is Status.OK
    assert (await session.execute(Press(keys="del"))).status is Status.OK
    assert await value(session, "#n") == ""
    unknown = await session.execute(Press(keys="NoSuchKey"))
    assert unknown.status is Status.FAILED and "NoSuchKey" in unknown.message


async def test_what_shows_on_hover_is_clicked_after_a_hover_of_its_row(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = f"""{EVENTS}<style>button {{ visibility: hidden }} p:hover button {{ visibility: visible }}</style>
        <p>Order 1 <button id=one>Delete</button><p>Order 2 <button id=two>Remove</button>"""
    seen = await visit(session, web.url())
    assert "shown-on-hover" in seen.elements[ref_of(seen, "Remove") - 1].states
    await click(session, "Remove")
    assert ["click", "two", True, ""] in await events(session)


async def test_scrolling_the_page_a_list_and_at_a_point(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = """<div id=l style='height:100px;overflow:auto'><div style='height:900px'><button>In</button></div></div>
        <div style='height:5000px'>tall</div>"""
    seen = await visit(session, web.url())
    assert (await session.execute(Scroll(direction="down"))).status is Status.OK
    assert await session.page.evaluate("scrollY") == 640
    assert "end" in (await session.execute(Scroll(direction="left"))).message
    await session.execute(Scroll(direction="down", ref=ref_of(seen, "In")))
    assert await session.page.evaluate("l.scrollTop") == 80
    await session.execute(Scroll(direction="up"))
    assert await session.page.evaluate("scrollY") == 0
    await session.execute(ScrollAt(x=600, y=400, dy=200))
    await session.page.wait_for_function("scrollY === 200", timeout=HANG_S * 1000)


async def test_the_main_pane_scrolls_where_the_page_itself_cannot(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = """<style>html,body{margin:0;height:100%;overflow:hidden}</style>
        <main id=m style='height:100%;overflow-y:auto'><div style='height:4000px'>tall</div></main>"""
    await visit(session, web.url())
    assert (await session.execute(Scroll(direction="down"))).message == ""
    assert await session.page.evaluate("m.scrollTop") > 100


TALL = "<div style='height:4000px'>tall</div>"
LIST = f"<div id=l style='height:100px;overflow:auto'><button>In</button>{TALL}</div>"
CLIPPED = "<div style='height:20px;overflow:hidden'><button>In</button><div style='height:90px'>more</div></div>"
SCROLLED = {
    "a body as high as the window": (f"<button>In</button>{TALL}", "scrollY"),
    "a body that scrolls the window": (f"<style>body{{overflow:auto}}</style><button>In</button>{TALL}", "scrollY"),
    "a body that scrolls itself": (
        f"<style>html{{overflow:hidden}}body{{overflow:auto}}</style><button>In</button>{TALL}",
        "document.body.scrollTop",
    ),
    "clipped content in a list": (f"<div id=l style='height:100px;overflow:auto'>{CLIPPED}{TALL}</div>", "l.scrollTop"),
    "a list around a slot": (
        f"""<div id=h><button>In</button></div><script>const r = h.attachShadow({{mode: 'open'}});
        r.innerHTML = `<div id=l style='height:100px;overflow:auto'><slot></slot>{TALL}</div>`</script>""",
        "r.firstChild.scrollTop",
    ),
    "a list around a component": (
        f"""<div id=l style='height:100px;overflow:auto'><div id=h></div>{TALL}</div>
        <script>h.attachShadow({{mode: 'open'}}).innerHTML = '<button>In</button>'</script>""",
        "l.scrollTop",
    ),
    "a list around a slot of a closed root": (
        f"""<x-list id=h><button>In</button></x-list><script>const r = h.attachShadow({{mode: 'closed'}});
        r.innerHTML = `<div id=l style='height:100px;overflow:auto'><slot></slot>{TALL}</div>`</script>""",
        "r.firstChild.scrollTop",
    ),
}


@pytest.mark.parametrize("mode", ["<!doctype html>", ""], ids=["standards", "quirks"])
@pytest.mark.parametrize(("body", "place"), SCROLLED.values(), ids=SCROLLED.keys())
async def test_what_scrolls_around_an_element_is_scrolled(
    web: Web, opener: Opener, body: str, place: str, mode: str
) -> None:
    session = await opener()
    web["/"] = f"{mode}<style>html,body{{margin:0;height:100%}}</style>{body}"
    seen = await visit(session, web.url())
    down, up = (Scroll(direction=direction, ref=ref_of(seen, "In")) for direction in ("down", "up"))
    assert (await session.execute(down)).message == ""
    assert await session.page.evaluate(place) > 0
    assert (await session.execute(up)).message == ""
    assert (await session.execute(up)).message == "nothing moved: it is at its up end"
    assert await session.page.evaluate(place) == 0


@pytest.mark.parametrize("mode", ["open", "closed"])
async def test_the_main_pane_in_a_shadow_root_scrolls(web: Web, opener: Opener, mode: str) -> None:
    session = await opener()
    web["/"] = f"""<!doctype html><style>html,body,#h{{margin:0;height:100%}}</style><div id=h></div>
        <script>const r = h.attachShadow({{mode: '{mode}'}});
        r.innerHTML = `<div style='height:100%;overflow:auto'>{TALL}</div>`</script>"""
    await visit(session, web.url())
    assert (await session.execute(Scroll(direction="down"))).message == ""
    assert await session.page.evaluate("r.firstChild.scrollTop") > 100


async def test_a_page_that_was_replaced_or_never_observed_is_scrolled(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = web["/next"] = f"<!doctype html><button onclick='this.textContent = 1'>Go</button>{TALL}"
    await session.execute(Goto(url=web.url()))
    assert (await session.execute(Scroll(direction="down"))).message == ""
    assert (await click(session, "Go")).status is Status.OK
    await session.page.goto(web.url("/next"))
    assert (await session.execute(Scroll(direction="down"))).message == ""
    assert await session.page.evaluate("scrollY") > 100
    assert (await click(session, "Go")).status is Status.OK


async def test_drag_with_the_mouse_and_with_html5(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = """<style>button{width:80px;height:40px}</style>
        <button id=a draggable=true ondragstart="event.dataTransfer.setData('text/plain', 'cargo')">From</button>
        <button id=b ondragover="event.preventDefault()" style='margin-left:200px'
          ondrop="event.preventDefault(); this.dataset.got = event.dataTransfer.getData('text/plain')">To</button>
        <div id=c style='position:absolute;left:0;top:200px;width:50px;height:50px;background:red'></div>
        <script>let on = false, path = []; c.onmousedown = () => on = true; onmouseup = () => on = false;
          onmousemove = e => { if (on) path.push(e.clientX); };</script>"""
    seen = await visit(session, web.url())
    assert (await session.execute(Drag(ref=ref_of(seen, "From"), to_ref=ref_of(seen, "To")))).status is Status.OK
    assert await session.page.evaluate("b.dataset.got") == "cargo"
    await session.execute(DragAt(x=25, y=225, to_x=325, to_y=225))
    path = await session.page.evaluate("path")
    assert path[-1] == 325 and len(path) > 3 and not await session.page.evaluate("on")


async def test_click_at_a_point(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = """<canvas id=k width=300 height=200></canvas>
        <script>k.onclick = e => k.title = e.clientX + ',' + e.clientY</script>"""
    await visit(session, web.url())
    await session.execute(ClickAt(x=100, y=50))
    assert await session.page.evaluate("k.title") == "100,50"


async def test_trouble_with_an_element_is_a_status_and_touches_nothing(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = f"""{EVENTS}<button id=gone>Gone</button><button disabled>Off</button>
        <div style='position:relative;width:200px'><button id=under style='width:200px'>Under</button>
        <div style='position:absolute;inset:0;background:gray'>Lid</div></div>"""
    seen = await visit(session, web.url())
    unknown = await session.execute(Click(ref=99))
    assert (unknown.status, unknown.reason) == (Status.NO_SUCH_REF, Reason.UNKNOWN_REF)
    off = await session.execute(Click(ref=ref_of(seen, "Off")))
    assert (off.status, off.reason) == (Status.DISABLED, Reason.DISABLED)
    covered = await session.execute(Click(ref=ref_of(seen, "Under")))
    assert covered.status is Status.COVERED and covered.reason is Reason.COVERED and "Lid" in covered.message
    await session.page.evaluate("gone.remove()")
    gone = await session.execute(Click(ref=ref_of(seen, "Gone")))
    assert (gone.status, gone.reason) == (Status.STALE, Reason.STALE_ELEMENT)
    assert "click" not in await kinds(session)


async def test_equal_buttons_that_moved_are_ambiguous(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = f"{EVENTS}<div id=box><button>Delete</button><button>Delete</button></div>"
    seen = await visit(session, web.url())
    first = next(e.ref for e in seen.elements if e.key.name == "Delete")
    await session.page.evaluate("box.innerHTML = '<button>Delete</button>'.repeat(3)")
    assert (await session.execute(Click(ref=first))).status is Status.AMBIGUOUS
    assert "click" not in await kinds(session)


async def test_find_and_expand_do_not_touch_the_page(web: Web, opener: Opener) -> None:
    session = await opener()
    rows = "".join(f"<tr><td><input type=checkbox aria-label='Pick {i}'><td>row {i}</tr>" for i in range(900))
    web["/"] = f"<table>{rows}</table>"
    await visit(session, web.url())
    found = await session.execute(Find(text="row 871"))
    assert found.status is Status.OK and "Pick 871" in found.output
    expanded = await session.execute(Expand(group="g1", start=800))
    assert expanded.status is Status.OK and "row 8" in expanded.output
    assert (await session.execute(Find(text="no such words"))).output != ""


async def test_goto_back_and_forward(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/a"], web["/b"] = "<title>A</title>", "<title>B</title>"
    await visit(session, web.url("/a"))
    assert (await session.execute(Goto(url="/b"))).url == web.url("/b")
    assert (await session.execute(Back())).url == web.url("/a")
    assert (await session.execute(Forward())).url == web.url("/b")
    assert "did not change" in (await session.execute(Forward())).message


async def test_back_over_what_an_iframe_visited_is_quick_and_no_failure(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<title>Outer</title><iframe src=/one name=f></iframe><a href=/two target=f>Two</a>"
    web["/one"], web["/two"] = "<p>first", "<p>second"
    await visit(session, web.url())
    await click(session, "Two")
    assert "second" in (await session.observe()).text
    with Bound(0.0, 6.0):
        back = await session.execute(Back())
    assert (back.status, back.message) == (Status.OK, "the address did not change")
    assert "first" in (await session.observe()).text
    assert (await session.execute(Forward())).status is Status.OK
    assert "second" in (await session.observe()).text


async def test_back_to_a_slow_page_is_waited_for(web: Web, opener: Opener) -> None:
    session = await opener()
    no_store = {"Cache-Control": "no-store"}
    web["/a"], web["/b"] = Answer("<p>first page", headers=no_store), "<p>second page"
    await visit(session, web.url("/a"))
    await visit(session, web.url("/b"))
    web["/a"] = Answer("<p>first page", headers=no_store, delay_s=4.5)
    back = await session.execute(Back())
    assert (back.status, back.message, back.url) == (Status.OK, "", web.url("/a"))
    assert "first page" in (await session.observe()).text


async def test_a_server_that_is_not_there_is_a_failure_with_a_reason(web: Web, opener: Opener) -> None:
    session = await opener()
    session.boundary.origins = session.boundary.origins.with_url("http://127.0.0.1:1234/")
    failed = await session.execute(Goto(url="http://127.0.0.1:1234/"))
    assert failed.status is Status.FAILED and "127.0.0.1:1234" in failed.message
    web["/a"] = "<title>A</title>"
    assert (await session.execute(Goto(url=web.url("/a")))).status is Status.OK


async def test_an_action_waits_for_what_it_started(web: Web, opener: Opener) -> None:
    """A fetch, its rendering, and a slow navigation end before the result is returned."""
    session = await opener()
    web["/data"] = Answer("fetched", delay_s=0.3)
    web["/next"] = Answer("<p>arrived</p>", delay_s=0.3)
    web[
        "/"
    ] = """<button onclick="fetch('/data').then(r => r.text()).then(t => setTimeout(() => out.textContent = t, 5))">
        Load</button><p id=out></p><a href=/next>Next</a>"""
    await visit(session, web.url())
    await click(session, "Load")
    assert "fetched" in (await session.observe()).text
    result = await click(session, "Next")
    assert result.url == web.url("/next")
    assert "arrived" in (await session.observe()).text


async def test_settling_is_bounded_on_a_page_that_never_rests(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<button>B</button><p id=p></p><script>setInterval(() => p.textContent = Math.random(), 10)</script>"
    seen = await visit(session, web.url())
    with Bound(1.0, 2.0):
        result = await session.execute(Click(ref=ref_of(seen, "B")))
    assert result.status is Status.OK and result.seconds >= 0.9


SUGGESTS = """<input aria-label=City {offers}><input aria-label=Other onfocus='later()'><ul></ul><script>
let timer;
const later = () => {{
  clearTimeout(timer);
  timer = setTimeout(async () => {{
    const answer = await (await fetch('/suggest')).text();
    document.querySelector('ul').innerHTML = `<li><button>${{answer}}</button></li>`;
  }}, {pause_ms});
}};
document.querySelector('input').addEventListener('input', later);
</script>"""


@pytest.mark.parametrize("offers", ["role=combobox", "type=search", "aria-autocomplete=list", "autocomplete=off"])
async def test_suggestions_that_a_field_fetches_after_a_pause_are_seen(web: Web, opener: Opener, offers: str) -> None:
    session = await opener()
    web["/"] = SUGGESTS.format(offers=offers, pause_ms=250)
    web["/suggest"] = Answer("Paris, France", delay_s=0.1)
    await visit(session, web.url())
    await type_text(session, "City", "Par")
    assert "Paris, France" in (await session.observe()).text


async def test_typing_that_no_script_hears_waits_for_nothing(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = SUGGESTS.format(offers="role=combobox", pause_ms=HANG_S * 1000)
    web["/suggest"] = "Paris, France"
    await visit(session, web.url())
    await type_text(session, "Other", "Par")
    assert web.hits("/suggest") == 0  # the pause of the page is not over


SLOW_MENU = """<a href=# onmouseenter="this.className = 'on'; setTimeout(unfold, 300)">File</a><p></p><script>
    const unfold = () => document.querySelector('p').innerHTML = '<button>Save</button>';
</script>"""


async def test_a_menu_that_opens_after_a_pause_is_seen_after_the_hover(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = SLOW_MENU
    await visit(session, web.url())
    await hover(session, "File")
    assert "Save" in (await session.observe()).text


async def test_a_page_that_hangs_after_a_hover_is_waited_for_within_bounds(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = '<a href=# onmouseenter="setTimeout(() => { while (true); }, 100)">File</a>'
    await visit(session, web.url())
    with Bound(0.0, 5.0):
        await hover(session, "File")


async def test_wait_sees_what_comes_later(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<button onclick=\"setTimeout(() => p.textContent = 'late', 300)\">B</button><p id=p></p>"
    await visit(session, web.url())
    await click(session, "B")
    assert (await session.execute(Wait())).status is Status.OK
    assert "late" in (await session.observe()).text
    assert "nothing changed" in (await session.execute(Wait())).message


async def test_stop_sends_nothing(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<p>x"
    await visit(session, web.url())
    before = len(web.requests)
    assert (await session.execute(Stop(answer="42"))).status is Status.STOPPED
    assert len(web.requests) == before


async def test_upload_only_from_the_folder(web: Web, opener: Opener, tmp_path: Path) -> None:
    folder = tmp_path / "uploads"
    folder.mkdir()
    (folder / "cv.txt").write_text("my cv")
    (tmp_path / "private.txt").write_text("private")
    (folder / "link.txt").symlink_to(tmp_path / "private.txt")
    session = await opener(upload_folder=folder)
    web["/"] = """<input type=file id=f aria-label=File>
        <input type=file id=h style='display:none'><button onclick='h.click()'>Choose</button><button>Plain</button>"""
    await visit(session, web.url())
    for path in ("../private.txt", "link.txt", str(tmp_path / "private.txt"), "nothing.txt", ".", "a\0b"):
        assert (await upload(session, "File", path)).status is Status.BLOCKED, path
    assert await session.page.evaluate("f.files.length") == 0
    assert (await upload(session, "File", "cv.txt")).status is Status.OK
    assert await session.page.evaluate("f.files[0].text()") == "my cv"
    assert (await upload(session, "Choose", "cv.txt")).status is Status.OK
    assert await session.page.evaluate("h.files[0].name") == "cv.txt"
    assert (await upload(session, "Plain", "cv.txt")).status is Status.NOT_ACTIONABLE


async def test_without_a_folder_nothing_is_uploaded(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<input type=file aria-label=File>"
    await visit(session, web.url())
    assert (await upload(session, "File", "cv.txt")).status is Status.BLOCKED


async def test_downloads_are_kept_and_hashed(web: Web, opener: Opener, tmp_path: Path) -> None:
    session = await opener(max_download_bytes=1000)
    attachment = {"Content-Type": "application/octet-stream", "Content-Disposition": "attachment"}
    web["/report"] = Answer(b"abc" * 100, headers={**attachment, "Content-Disposition": 'attachment; filename="r.csv"'})
    web["/big"] = Answer(b"x" * 5000, headers=attachment)
    web["/"] = "<a href=/report>Report</a> <a href=/big>Big</a> <a href=/report download='../../evil.sh'>Evil</a>"
    await visit(session, web.url())
    first, again = await downloads(session, "Report"), await downloads(session, "Report")
    evil = await downloads(session, "Evil")
    run = tmp_path / "run"
    assert [d.name for d in (*first, *again)] == ["r.csv", "r.csv"]
    assert first[0].path == "downloads/r.csv" != again[0].path
    assert first[0].sha256 == hashlib.sha256(b"abc" * 100).hexdigest() and first[0].bytes == 300
    assert (run / first[0].path).read_bytes() == b"abc" * 100
    assert evil and all((run / d.path).resolve().parent == run / "downloads" for d in evil)
    message = (await click(session, "Big")).message
    assert "refused" in (message or (await session.execute(Wait())).message)
    assert len(list((run / "downloads").iterdir())) == 3


async def downloads(session: BrowserSession, name: str) -> tuple[Download, ...]:
    """Returns the downloads of a click; the browser may report them only after the page has settled."""
    result = await click(session, name)
    return result.downloads or (await session.execute(Wait())).downloads


def slow_file(pause_s: float) -> Answer:
    headers = {"Content-Type": "application/octet-stream", "Content-Disposition": 'attachment; filename="r.csv"'}
    return Answer(b"x" * 20_000, headers=headers, pause_s=pause_s)


async def test_going_to_a_file_downloads_it_and_is_no_failure(web: Web, opener: Opener) -> None:
    session = await opener(max_download_bytes=50_000)
    gate = Gate()
    web["/a"], web["/quick"], web["/slow"] = "<p>page", slow_file(0.0), replace(slow_file(0.0), gate=gate)
    web["/big"] = Answer(b"x" * 60_000, headers={"Content-Type": "application/zip"})
    await visit(session, web.url("/a"))
    quick = await session.execute(Goto(url="/quick"))
    assert (quick.status, quick.message) == (Status.OK, "the address is a file: it was downloaded")
    assert [one.name for one in quick.downloads] == ["r.csv"] and quick.url == web.url("/a")
    slow = await session.execute(Goto(url="/slow"))
    assert (slow.status, slow.message) == (Status.OK, "the address is a file; download 'r.csv' is under way")
    big = await session.execute(Goto(url="/big"))
    assert big.status is Status.OK and "refused: 60000 bytes" in big.message and "it was downloaded" not in big.message
    assert "page" in (await session.observe()).text
    assert (await session.execute(Goto(url="/a"))).status is Status.OK
    gate.open.set()


async def test_a_download_under_way_is_reported_and_waited_for_at_the_end(web: Web, opener: Opener) -> None:
    session = await opener()
    gate = Gate()
    web["/report"] = replace(slow_file(0.0), gate=gate)
    web["/"] = "<a href=/report>Report</a>"
    await visit(session, web.url())
    begun = await click(session, "Report")
    assert begun.status is Status.OK and "download 'r.csv' is under way" in begun.message
    asyncio.get_running_loop().call_later(0.3, gate.open.set)
    stopped = await session.execute(Stop(answer="done"))
    assert (stopped.status, stopped.message) == (Status.STOPPED, "")
    assert [(one.name, one.bytes) for one in stopped.downloads] == [("r.csv", 20_000)]


async def test_a_download_that_does_not_end_is_given_up_aloud(web: Web, opener: Opener, tmp_path: Path) -> None:
    session = await opener(download_wait_s=0.5)
    web["/report"] = slow_file(HANG_S)
    web["/"] = "<a href=/report>Report</a>"
    await visit(session, web.url())
    await click(session, "Report")
    await session.downloads.begun.until(1, HANG_S)
    with Bound(0.5, 2.5):
        stopped = await session.execute(Stop())
    assert stopped.status is Status.STOPPED and stopped.downloads == ()
    assert stopped.message == "download 'r.csv' was given up: not complete 0.5 s after the end"
    await session.close()
    assert not (tmp_path / "run" / "downloads").exists(), "it was reported by a step"


@pytest.mark.parametrize(("pause_s", "report"), [(3.0, "kept as downloads/r.csv: 20000 bytes"), (20.0, "was given up")])
async def test_what_no_step_could_tell_is_written_beside_the_files(
    web: Web, opener: Opener, tmp_path: Path, pause_s: float, report: str
) -> None:
    session = await opener(download_wait_s=5.0)
    web["/report"] = slow_file(pause_s)
    web["/"] = "<a href=/report>Report</a>"
    await visit(session, web.url())
    await click(session, "Report")
    await session.downloads.begun.until(1, HANG_S)
    await session.close()
    home = tmp_path / "run" / "downloads"
    assert f"download 'r.csv' {'is ' if pause_s < 5 else ''}{report}" in (home / AFTER_LAST_STEP).read_text(
        encoding="utf-8"
    )
    assert (home / "r.csv").exists() == (pause_s < 5)


async def test_a_file_of_a_site_is_not_taken_for_the_report(web: Web, opener: Opener, tmp_path: Path) -> None:
    session = await opener(download_wait_s=0.5)
    content = b"download 'invoice.pdf' is kept\n"
    named = {"Content-Disposition": f'attachment; filename="{AFTER_LAST_STEP}"'}
    web["/file"], web["/report"] = Answer(content, headers=named), slow_file(HANG_S)
    web["/"] = "<a href=/file>File</a> <a href=/report>Report</a>"
    await visit(session, web.url())
    (kept,) = await downloads(session, "File")
    await click(session, "Report")
    await session.downloads.begun.until(2, HANG_S)
    await session.close()
    home = tmp_path / "run" / "downloads"
    stored = (tmp_path / "run" / kept.path).read_bytes()
    assert (stored, len(stored), hashlib.sha256(stored).hexdigest()) == (content, kept.bytes, kept.sha256)
    assert kept.name == AFTER_LAST_STEP and kept.path != f"downloads/{AFTER_LAST_STEP}"
    report = (home / AFTER_LAST_STEP).read_text(encoding="utf-8")
    assert report == "download 'r.csv' was given up: not complete 0.5 s after the end\n"


async def test_the_settings_of_the_context_hold(web: Web, opener: Opener) -> None:
    session = await opener(
        locale="de-DE",
        timezone="Asia/Tokyo",
        viewport=Viewport(width=900, height=500),
        geolocation=Geolocation(latitude=48.2, longitude=16.4),
    )
    web["/"] = "<p>x"
    await visit(session, web.url())
    facts = await session.page.evaluate(
        "[navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone, innerWidth, innerHeight]"
    )
    assert facts == ["de-DE", "Asia/Tokyo", 900, 500]


async def test_contexts_share_nothing(web: Web, opener: Opener) -> None:
    one, two = await opener(), await opener()
    web["/"] = "<script>document.cookie = document.cookie ? 'b=1' : 'a=1'; document.write(document.cookie)</script>"
    assert "a=1" in (await visit(one, web.url())).text
    assert "b=1" not in (await visit(two, web.url())).text


async def test_storage_goes_into_the_next_session(web: Web, opener: Opener, tmp_path: Path) -> None:
    web["/"] = "<script>document.cookie = 'c=1'; localStorage.k = 'v'</script>"
    web["/look"] = "<p id=p></p><script>p.textContent = document.cookie + ' ' + localStorage.k</script>"
    first = await opener()
    await visit(first, web.url())
    (tmp_path / "state.json").write_text(json.dumps(await first.storage()))
    second = await opener(storage_state=tmp_path / "state.json")
    assert "c=1 v" in (await visit(second, web.url("/look"))).text


async def test_what_was_typed_is_in_no_message(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<input aria-label=N onfocus='window.close()'><input aria-label=M onfocus='this.remove()'>"
    await visit(session, web.url())
    for name in ("M", "N"):
        result = await session.execute(Type(ref=ref_of(await session.observe(), name), text="hunter2-plain"))
        assert "hunter2" not in result.model_dump_json()
