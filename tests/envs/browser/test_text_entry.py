"""What is typed is what the field holds, even if it is rendered again at every key; else the result says so."""

from __future__ import annotations

import pytest

from envs.browser.session import BrowserSession
from envs.core.actions import ActionResult, Reason, Status, Type
from envs.security.allowlist import Origins
from envs.security.secrets import SecretVault
from tests.envs.browser.browsing import Opener, ref_of, visit
from tests.envs.browser.web import Web

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TEXT = "Hello 42"
HOLDS = "() => { const f = document.querySelector('#f'); return f.value ?? f.innerText; }"


async def enter(session: BrowserSession, text: str = TEXT, *, clear: bool = True, enter: bool = False) -> ActionResult:
    ref = ref_of(await session.observe(), "F")
    return await session.execute(Type(ref=ref, text=text, clear=clear, enter=enter))


async def held(session: BrowserSession) -> str:
    return str(await session.page.evaluate(HOLDS))


RENDER = """<div id=root></div><script>
let state = '';
const root = document.querySelector('#root');
const render = () => {{ root.innerHTML = `<label>F<input id=f value="${{state}}" {attributes}></label>`; wire() }};
const wire = () => {{ const f = document.querySelector('#f'); {wiring} }};
render();
</script>"""


def rendered(wiring: str, attributes: str = "") -> str:
    """A page that renders its field from `state`."""
    return RENDER.format(wiring=wiring, attributes=attributes)


REPLACED = {
    "rendered at every key": rendered("f.oninput = () => { state = f.value; render() }"),
    "rendered at every key, with the focus": rendered(
        "f.oninput = () => { state = f.value; render(); document.querySelector('#f').focus() }"
    ),
    "rendered with its text selected": rendered(
        "f.oninput = () => { state = f.value; render(); document.querySelector('#f').select() }"
    ),
    "rendered with the caret at its start": rendered(
        "f.oninput = () => { state = f.value; render(); document.querySelector('#f').focus(); "
        "document.querySelector('#f').setSelectionRange(0, 0) }"
    ),
    "rendered a moment later": rendered("f.oninput = () => { state = f.value; setTimeout(render) }"),
    "rendered by a promise": rendered("f.oninput = () => { state = f.value; Promise.resolve().then(render) }"),
    "rendered in the next frame": rendered("f.oninput = () => { state = f.value; requestAnimationFrame(render) }"),
    "rendered at the third key": rendered("f.oninput = () => { state = f.value; if (state.length === 3) render() }"),
    "rendered by the click": rendered("f.onfocus = () => { if (!window.once) { once = 1; render() } }"),
    "rendered when it was emptied": rendered("f.oninput = () => { if (!f.value) { state = ''; render() } }").replace(
        "let state = ''", "let state = 'old'"
    ),
    "one letter kept by a stale state": "<label>F<input id=f></label><script>f.oninput = e => { if (e.inputType === "
    "'insertText') f.value = e.data }</script>",
    "keys lost in an own copy": "<label>F<input id=f></label><script>let n = 0; f.oninput = e => { if (e.inputType === "
    "'insertText' && n++ % 2) f.value = f.value.slice(0, -1) }</script>",
    "a framework that compares values": """<label>F<input id=f></label><script>
        const own = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value'); let known = '', state = '';
        Object.defineProperty(f, 'value', {get() { return own.get.call(this) },
          set(v) { known = v; own.set.call(this, v) }, configurable: true});
        f.oninput = e => { if (f.value === known) return;
          state = e.inputType === 'insertText' ? e.data : f.value; f.value = state }
        </script>""",
    "text that is edited": "<div id=f contenteditable role=textbox aria-label=F></div>",
    "many lines": "<textarea id=f aria-label=F></textarea>",
}


async def test_the_text_arrives_in_a_field_that_is_rendered_again(web: Web, opener: Opener) -> None:
    session = await opener()
    seen: dict[str, tuple[Status, str, str]] = {}
    for name, page in REPLACED.items():
        web["/"] = page
        await visit(session, web.url())
        result = await enter(session)
        seen[name] = (result.status, result.message, await held(session))
    assert seen == dict.fromkeys(REPLACED, (Status.OK, "", TEXT))


FORMATTED = {
    "upper case": ("oninput='this.value = this.value.toUpperCase()'", TEXT, "HELLO 42"),
    "trimmed": ("oninput='this.value = this.value.trim()'", "ab ", "ab"),
    "digits alone": ("oninput=\"this.value = this.value.replace(/\\D/g, '')\"", TEXT, "42"),
    "digits alone, by keys": ("onkeypress='return /[0-9]/.test(event.key)'", TEXT, "42"),
    "a number": ("type=number", "1e", ""),
    "at most four": ("maxlength=4", TEXT, "Hell"),
    "at most four, by a script": ("oninput='this.value = this.value.slice(0, 4)'", TEXT, "Hell"),
    "a phone number": (
        "oninput=\"const d = this.value.replace(/\\D/g, ''); this.value = d.length > 3 ? '(' + d.slice(0, 3) + ') ' + "
        'd.slice(3) : d"',
        "5551234",
        "(555) 1234",
    ),
    "a currency": ("oninput=\"this.value = '$' + this.value.replace(/\\D/g, '')\"", "1200", "$1200"),
    "completed": ("oninput=\"if (this.value === 'par') this.value = 'paris'\"", "par", "paris"),
    "refused": ("onbeforeinput='event.preventDefault()'", TEXT, ""),
    "consumed": ("oninput=\"if (this.value.endsWith(',')) { tags.append(this.value); this.value = '' }\"", "red,", ""),
}


async def test_the_result_says_what_the_page_made_of_the_text(web: Web, opener: Opener) -> None:
    session = await opener()
    wrong: dict[str, object] = {}
    for name, (attributes, text, expected) in FORMATTED.items():
        web["/"] = f"<label>F<input id=f {attributes}></label><p id=tags></p>"
        await visit(session, web.url())
        result = await enter(session, text)
        tags = await session.page.evaluate("document.querySelector('#tags').textContent")
        says = f'the field now holds "{expected}"' if expected else "the field is empty now"
        seen = (result.status, result.reason, result.message, await held(session), tags)
        if seen != (Status.OK, Reason.FIELD_DIFFERS, says, expected, "red," if "red" in text else ""):
            wrong[name] = seen
    assert wrong == {}


async def test_a_value_that_is_clamped_is_reported(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<label>F<input id=f type=range min=0 max=50></label>"
    await visit(session, web.url())
    assert (await enter(session, "70")).message == 'the field now holds "50"'


async def test_digits_that_move_on_from_field_to_field_are_typed_once(web: Web, opener: Opener) -> None:
    session = await opener()
    box = "<input maxlength=1 aria-label={} oninput='this.nextElementSibling?.focus()'>"
    web["/"] = box.format("F") + box.format("G") * 3
    await visit(session, web.url())
    assert (await enter(session, "1234")).ok
    assert await session.page.evaluate("[...document.querySelectorAll('input')].map(i => i.value).join('')") == "1234"


async def test_typing_at_the_end_keeps_what_was_there(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<label>F<input id=f value='old '></label>"
    await visit(session, web.url())
    assert (await enter(session, "new", clear=False)).message == ""
    assert await held(session) == "old new"


COMMITS = {
    "a form that submits at every key": (
        "<form method=post action=/commit><label>F<input id=f name=q oninput='form.requestSubmit()'></label></form>",
        False,
    ),
    "a request at every change": (
        rendered(
            "f.oninput = () => { state = f.value[0]; window.n = (window.n ?? 0) + 1; "
            "fetch('/commit', {method: 'POST', body: n > 8 ? 'again' : n}); render() }"
        ),
        False,
    ),
    "Enter in a field that is rendered again": (
        rendered(
            "f.oninput = () => { state = f.value; render() }; f.onkeydown = e => { if (e.key === 'Enter') "
            "fetch('/commit', {method: 'POST', body: f.value}) }"
        ),
        True,
    ),
    "Enter in a form": (
        "<form method=post action=/commit><label>F<input id=f name=q></label></form>",
        True,
    ),
    "Enter in a field that kept one letter": (
        "<form method=post action=/commit><label>F<input id=f name=q oninput=\"if (event.inputType === 'insertText') "
        'this.value = event.data"></label></form>',
        True,
    ),
    "a form that submits when the text is complete": (
        "<form method=post action=/commit><label>F<input id=f name=q oninput='if (value.length === 8) "
        "form.requestSubmit()'></label></form>",
        False,
    ),
}


@pytest.mark.parametrize("form", COMMITS)
async def test_nothing_is_committed_twice(web: Web, opener: Opener, form: str) -> None:
    session = await opener()
    body, with_enter = COMMITS[form]
    web["/"] = body
    web["/commit"] = "<p>done"
    await visit(session, web.url())
    result = await enter(session, enter=with_enter)
    assert result.status is Status.OK, result.message
    bodies = [content.decode() for method, path, content in web.requests if (method, path) == ("POST", "/commit")]
    assert len(bodies) == len(set(bodies)) and "again" not in bodies, bodies
    if with_enter:
        assert bodies in ([TEXT], ["q=Hello+42"])


async def test_keys_do_not_reach_the_shortcuts_of_the_page(web: Web, opener: Opener) -> None:
    """After the first key the field is gone; the others go to the field that took its place."""
    session = await opener()
    web["/"] = (
        "<script>const hit = []; addEventListener('keydown', e => e.target === document.body && hit.push(e.key));"
        "</script>" + REPLACED["rendered at every key"]
    )
    await visit(session, web.url())
    assert (await enter(session)).ok
    assert await session.page.evaluate("hit.join('')") == ""


@pytest.mark.parametrize("kind", ["password", "text"])
async def test_the_value_of_a_secret_is_not_reported(web: Web, opener: Opener, kind: str) -> None:
    vault = SecretVault({"KEY": ("swordfish-42", Origins.parse([f"http://127.0.0.1:{web.port}"]))})
    session = await opener(vault=vault)
    web["/"] = f"<label>F<input id=f type={kind} oninput='this.value = this.value.slice(0, 5)'></label>"
    await visit(session, web.url())
    result = await enter(session, "<secret>KEY</secret>")
    assert result.reason is Reason.FIELD_DIFFERS and "sword" not in result.model_dump_json()


async def test_a_password_that_is_no_secret_is_not_reported(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<label>F<input id=f type=password maxlength=4></label>"
    await visit(session, web.url())
    result = await enter(session)
    assert result.reason is Reason.FIELD_DIFFERS and "Hell" not in result.message


@pytest.mark.parametrize(
    "case",
    [
        ("date", "2026-03-04", "03/05/2026", "YYYY-MM-DD"),
        ("time", "14:30", "2:45 PM", "HH:MM (24 hours)"),
        ("month", "2026-03", "April 2026", "YYYY-MM"),
        ("week", "2026-W10", "week 11", "YYYY-Www"),
        ("datetime-local", "2026-03-04T10:00", "tomorrow", "YYYY-MM-DDTHH:MM"),
    ],
)
async def test_a_date_in_the_wrong_form_leaves_the_field_as_it_was(
    web: Web, opener: Opener, case: tuple[str, str, str, str]
) -> None:
    kind, before, refused, expected = case
    session = await opener()
    web["/"] = f"""<label>F<input id=f type={kind} value="{before}"></label>
        <script>f.oninput = f.onchange = () => document.title = 'changed'</script>"""
    await visit(session, web.url())
    result = await enter(session, refused)
    assert result.status is Status.NOT_ACTIONABLE and result.message.endswith(f", only {expected}"), result
    assert await held(session) == before
    assert await session.page.title() == ""


async def test_a_date_field_that_is_read_only_says_so(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<label>F<input id=f type=date readonly></label>"
    await visit(session, web.url())
    assert (await enter(session, "2026-03-04")).reason is Reason.READ_ONLY


TEXTLESS = [
    ("<button onclick='note()'>F</button>", ["note"], "it was only clicked"),
    ("<a href=# onclick='note()'>F</a>", ["note"], "it was only clicked"),
    ("<div role=tab tabindex=0 onclick='note()'>F</div>", ["note"], "it was only clicked"),
    ("<label>F<input type=checkbox onclick='note()'></label>", [], "click it instead"),
    ("<div role=switch tabindex=0 aria-label=F onclick='note()'>on</div>", [], "click it instead"),
    (
        "<div role=slider tabindex=0 aria-label=F onclick='note()' style='width:90px;height:9px'></div>",
        [],
        "press its arrow keys instead",
    ),
]


@pytest.mark.parametrize("case", TEXTLESS)
async def test_a_control_that_takes_no_text_says_so(web: Web, opener: Opener, case: tuple[str, list[str], str]) -> None:
    html, noted, instead = case
    session = await opener()
    web["/"] = f"<script>var notes = []; const note = () => notes.push('note')</script>{html}"
    await visit(session, web.url())
    result = await enter(session, "a b ", enter=True)
    assert (result.status, result.reason) == (Status.NOT_ACTIONABLE, Reason.WRONG_CONTROL), result
    assert result.message.endswith(instead)
    assert await session.page.evaluate("notes") == noted


LEADING = [
    ("<button onclick='f.hidden = false; f.focus()'>F</button><input id=f hidden>", "opens a search field"),
    ("<div tabindex=0 aria-label=F onkeydown='f.value += event.key'>cell</div><input id=f>", "a cell of a sheet"),
]


@pytest.mark.parametrize("html", [case[0] for case in LEADING], ids=[case[1] for case in LEADING])
async def test_keys_go_where_the_click_led(web: Web, opener: Opener, html: str) -> None:
    session = await opener()
    web["/"] = html
    seen = await visit(session, web.url())
    result = await session.execute(Type(ref=seen.elements[0].ref, text=TEXT))
    assert result.status is Status.OK
    assert await held(session) == TEXT
