"""Actions on pages whose elements shadow DOM properties."""

from __future__ import annotations

import pytest

from envs.core.actions import Press, Scroll, Status
from tests.envs.browser.browsing import Opener, click, ref_of, select, type_text, visit
from tests.envs.browser.web import Web

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MEMBERS = (
    "tagName type disabled readOnly isContentEditable getRootNode contains focus ownerDocument textContent value "
    "select parentElement scrollHeight scrollWidth clientHeight clientWidth scrollTop scrollLeft scrollBy labels "
    "options getBoundingClientRect scrollIntoView querySelectorAll matches shadowRoot dispatchEvent"
)
OF_DOCUMENT = (
    "activeElement scrollingElement documentElement body querySelectorAll elementFromPoint defaultView createRange "
    "execCommand getSelection"
)


def shadows(names: str) -> str:
    """Hidden elements with these names."""
    return "".join(f"<input type=hidden name={name}><img hidden name={name}>" for name in names.split())


async def test_an_editable_form_is_typed_into(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = f"<form id=f contenteditable aria-label=Body>old{shadows(MEMBERS)}</form>{shadows(OF_DOCUMENT)}"
    await visit(session, web.url())
    result = await type_text(session, "Body", "new")
    assert result.status is Status.OK, result.message
    text = await session.page.evaluate(
        "Object.getOwnPropertyDescriptor(Node.prototype, 'textContent').get.call(document.getElementById('f'))"
    )
    assert text == "new"


async def test_a_form_and_a_page_are_scrolled(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = f"""<form id=f style='height:100px;overflow:auto' onclick=1>{shadows(MEMBERS)}<p style='height:900px'>
        <button type=button>In</button></form><div style='height:5000px'>tall</div>{shadows(OF_DOCUMENT)}"""
    seen = await visit(session, web.url())
    assert (await session.execute(Scroll(direction="down", ref=ref_of(seen, "In")))).message == ""
    top = "Object.getOwnPropertyDescriptor(Element.prototype, 'scrollTop').get.call(document.getElementById('f'))"
    assert await session.page.evaluate(top) == 80
    assert (await session.execute(Scroll(direction="down"))).message == ""
    assert await session.page.evaluate("scrollY") == 640


async def test_a_page_whose_focus_is_shadowed_is_settled(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = (
        f"<form><input type=search aria-label=Q>{shadows(MEMBERS)}</form><button>Go</button>{shadows(OF_DOCUMENT)}"
    )
    await visit(session, web.url())
    assert (await type_text(session, "Q", "cup")).status is Status.OK
    assert (await session.execute(Press(keys="Tab"))).status is Status.OK
    assert (await click(session, "Go")).status is Status.OK


async def test_an_option_is_chosen_by_the_name_that_is_shown(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = f"""<form>{shadows(MEMBERS)}<select id=s aria-label=Size><option>S<option id=o></select></form>
        <script>o.textContent = 'L\\ud800\\u200b'</script>"""
    await visit(session, web.url())
    result = await select(session, "Size", "L\ufffd")
    assert result.status is Status.OK, result.message
    assert await session.page.evaluate("s.selectedIndex") == 1


async def test_a_lone_surrogate_everywhere_can_be_written_down(web: Web, opener: Opener) -> None:
    session = await opener(dialogs="accept")
    web["/"] = """<button onclick="confirm('sure\\ud800?'); document.title = 'done\\udc00'">Go</button>
        <a download='a\\ud800b.txt' href='data:text/plain,x' id=d>File</a>
        <script>d.download = 'a\\ud800b.txt'; history.replaceState(null, '', '?q=\\ud800#\\udc00')</script>"""
    await visit(session, web.url())
    went = await click(session, "Go")
    got = await click(session, "File")
    seen = await session.observe()
    for record in (went, got):
        record.model_dump_json().encode()
    repr(seen).encode()
    assert [one.message for one in went.dialogs] == ["sure\ufffd?"]
    assert seen.title == "done\ufffd"


async def test_the_calls_into_a_page_are_there_after_every_navigation(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<p>page"
    world = session.tabs.front.world
    for host in ("127.0.0.1", "localhost") * 4:  # of two sites, so in another process each time
        await session.page.goto(web.url().replace("127.0.0.1", host).replace("localhost", host))
        assert await world.call("() => typeof mira.untilQuiet") == "function"
        assert await world.call("() => typeof mira.wholePage") == "function"
