"""Tabs and dialogs: the front tab, the reports, and no calls into a blocked page."""

from __future__ import annotations

import asyncio

import pytest

from envs.browser.session import BrowserSession
from envs.browser.tabs import OpenTab
from envs.core.actions import AnswerDialog, Back, Click, CloseTab, FocusTab, Goto, NewTab, Press, Reason, Status, Stop
from tests.envs.browser.browsing import Opener, click, ref_of, visit
from tests.envs.browser.web import Web
from tests.timing import HANG_S, Bound

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_link_that_opens_a_tab_brings_it_to_the_front(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<title>First</title><a href=/two target=_blank>Two</a>"
    web["/two"] = "<title>Second</title><p>second page"
    await visit(session, web.url())
    result = await click(session, "Two")
    assert (result.new_tabs, result.url) == (1, web.url("/two"))
    seen = await session.observe()
    assert "second page" in seen.text
    assert [(t.index, t.title, t.active) for t in seen.tabs] == [(0, "First", False), (1, "Second", True)]
    assert (await session.execute(FocusTab(index=0))).url == web.url()
    assert (await session.execute(FocusTab(index=5))).status is Status.FAILED
    await session.execute(FocusTab(index=1))
    assert (await session.execute(CloseTab())).url == web.url()


async def test_closing_the_last_tab_leaves_a_blank_one(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<button onclick='window.close()'>Bye</button>"
    await visit(session, web.url())
    assert (await session.execute(CloseTab())).url == "about:blank"
    await session.execute(NewTab())
    assert len((await session.observe()).tabs) == 2


async def test_a_tab_that_closes_itself_is_no_error(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<button onclick=\"window.open('/pop')\">Open</button>"
    web["/pop"] = "<button onclick='window.close()'>Bye</button>"
    await visit(session, web.url())
    await click(session, "Open")
    result = await click(session, "Bye")
    assert (result.status, result.url) == (Status.OK, web.url())


async def test_no_more_tabs_than_allowed(web: Web, opener: Opener) -> None:
    session = await opener(max_tabs=2)
    assert (await session.execute(NewTab())).status is Status.OK
    assert (await session.execute(NewTab())).status is Status.FAILED


async def test_a_window_beyond_the_limit_is_reported_and_is_no_new_tab(web: Web, opener: Opener) -> None:
    session = await opener(max_tabs=2)
    web["/"] = "<a href=/two target=_blank>Two</a>"
    web["/two"] = "<a href=/three target=_blank>Three</a>"
    await visit(session, web.url())
    assert (await click(session, "Two")).new_tabs == 1
    result = await click(session, "Three")
    assert (result.status, result.reason, result.new_tabs) == (Status.OK, Reason.TOO_MANY_TABS, 0)
    assert result.message == "a window was closed: 2 tabs are open, close one first"
    assert result.url == web.url("/two") and len((await session.observe()).tabs) == 2
    for number in (3, 4):
        await session.page.evaluate("void window.open('/three')")
        await session.tabs.windows.until(number, HANG_S)
    later = await session.execute(Press(keys="Tab"))
    assert (later.message, later.new_tabs) == ("2 windows were closed: 2 tabs are open, close one first", 0)
    assert (await session.execute(Press(keys="Tab"))).message == ""
    await session.execute(CloseTab())
    assert (await click(session, "Two")).new_tabs == 1


async def test_a_window_that_comes_while_a_tab_opens_is_counted(web: Web, opener: Opener) -> None:
    rounds = 5
    session = await opener(max_tabs=2 * rounds + 1)
    web["/"], web["/two"] = "<p>page", "<p>two"
    await visit(session, web.url())
    first = session.tabs.front
    for number in range(1, rounds + 1):
        await asyncio.gather(first.page.evaluate("void open('/two')"), session.tabs.open())
        await session.tabs.windows.until(number, HANG_S)
        assert (session.tabs.opened, session.tabs.refused) == (number, 0)
        assert len(session.tabs.all) == 1 + 2 * number
    await first.page.evaluate("void open('/two')")
    await session.tabs.windows.until(rounds + 1, HANG_S)
    assert (session.tabs.opened, session.tabs.refused, len(session.tabs.all)) == (rounds, 1, 2 * rounds + 1)


async def test_an_alert_is_accepted_and_reported(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<button onclick=\"alert('hello'); this.textContent = 'Done'\">Go</button>"
    await visit(session, web.url())
    result = await click(session, "Go")
    assert [(d.type, d.message, d.answer) for d in result.dialogs] == [("alert", "hello", "accepted")]
    assert "Done" in (await session.observe()).text


async def test_an_alert_between_two_steps_is_reported_by_the_next_one(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<button onclick=\"window.late = () => setTimeout(() => alert('late'))\">Go</button>"
    await visit(session, web.url())
    assert (await click(session, "Go")).dialogs == ()
    async with session.page.expect_event("dialog"):
        await session.page.evaluate("late()")
    later = await session.execute(Press(keys="Tab"))
    assert [(d.type, d.message, d.answer) for d in later.dialogs] == [("alert", "late", "accepted")]
    assert (await session.execute(Press(keys="Tab"))).dialogs == ()


@pytest.mark.parametrize(("accept", "text", "outcome"), [(True, "42", "42"), (False, "", "null")])
async def test_a_dialog_waits_for_its_answer(web: Web, opener: Opener, accept: bool, text: str, outcome: str) -> None:
    session = await opener()
    web["/"] = "<button onclick=\"p.textContent = 'said ' + prompt('how many?')\">Ask</button><p id=p></p>"
    await visit(session, web.url())
    opened = await click(session, "Ask")
    assert [(d.type, d.answer) for d in opened.dialogs] == [("prompt", "open")]
    with Bound(0.0, 1.0):
        seen = await session.observe()  # does not call into the blocked page
    assert seen.dialog is not None and (seen.dialog.message, seen.text) == ("how many?", "")
    for action in (Back(), Goto(url=web.url()), NewTab()):
        assert (await session.execute(action)).status is Status.DIALOG_OPEN
    assert (await session.execute(Stop())).status is Status.STOPPED
    answered = await session.execute(AnswerDialog(accept=accept, text=text))
    assert answered.status is Status.OK
    assert answered.dialogs[0].answer == ("accepted" if accept else "dismissed")
    assert f"said {outcome}" in (await session.observe()).text


async def test_two_dialogs_in_a_row(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<button onclick=\"p.textContent = [confirm('a'), confirm('b')]\">Ask</button><p id=p></p>"
    await visit(session, web.url())
    await click(session, "Ask")
    await session.execute(AnswerDialog(accept=True))
    seen = await session.observe()
    assert seen.dialog is not None and seen.dialog.message == "b"
    await session.execute(AnswerDialog(accept=False))
    assert "true,false" in (await session.observe()).text


async def test_a_dialog_from_a_timer_is_seen_at_the_next_observation(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<p id=p>waiting</p><script>setTimeout(() => p.textContent = confirm('still there?'), 300)</script>"
    await visit(session, web.url())
    async with asyncio.timeout(HANG_S):
        while (seen := await session.observe()).dialog is None:
            pass
    assert seen.dialog is not None and seen.dialog.message == "still there?"
    await session.execute(AnswerDialog(accept=True))
    assert "true" in (await session.observe()).text


async def test_a_page_blocked_by_a_dialog_can_be_closed(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<button onclick=\"confirm('?')\">Ask</button>"
    await visit(session, web.url())
    await click(session, "Ask")
    assert (await session.execute(CloseTab())).status is Status.OK
    assert (await session.observe()).dialog is None
    assert (await session.execute(Goto(url=web.url()))).status is Status.OK


async def test_leaving_a_page_that_asks_to_stay(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/"] = "<button>Touch</button><script>onbeforeunload = e => e.preventDefault()</script>"
    web["/next"] = "<p>next"
    await visit(session, web.url())
    await click(session, "Touch")
    held = await session.execute(Goto(url=web.url("/next")))
    assert [(d.type, d.answer) for d in held.dialogs] == [("beforeunload", "open")]
    stayed = await session.execute(AnswerDialog(accept=False))
    assert stayed.url == web.url()
    await session.execute(Goto(url=web.url("/next")))
    assert (await session.execute(AnswerDialog(accept=True))).url == web.url("/next")
    assert "next" in (await session.observe()).text


@pytest.mark.parametrize(("policy", "outcome"), [("accept", "true"), ("dismiss", "false")])
async def test_dialogs_can_have_a_standing_answer(web: Web, opener: Opener, policy: str, outcome: str) -> None:
    session = await opener(dialogs=policy)
    web["/"] = "<button onclick=\"p.textContent = confirm('?')\">Ask</button><p id=p></p>"
    await visit(session, web.url())
    result = await click(session, "Ask")
    assert [d.answer for d in result.dialogs] == ["accepted" if policy == "accept" else "dismissed"]
    assert outcome in (await session.observe()).text


async def asks(session: BrowserSession, tab: OpenTab) -> None:
    """Makes the page of *tab* open its dialog, and waits for it."""
    async with session.context.expect_event("dialog"):
        await tab.page.evaluate("void setTimeout(ask)")


ASKING = "<p id=p>none</p><script>const ask = () => p.textContent = 'said ' + prompt(location.pathname)</script>"


async def test_dialogs_of_two_tabs_are_answered_one_after_the_other(web: Web, opener: Opener) -> None:
    """The dialog of the front tab first."""
    session = await opener()
    web["/1"] = web["/2"] = ASKING
    await visit(session, web.url("/1"))
    await session.execute(NewTab())
    await visit(session, web.url("/2"))
    await asks(session, session.tabs.all[0])
    for _ in range(2):
        await asks(session, session.tabs.front)
        seen = await session.observe()
        assert seen.dialog is not None and seen.dialog.message == "/2"
        answered = await session.execute(AnswerDialog(accept=True, text="again"))
        assert [(dialog.message, dialog.answer) for dialog in answered.dialogs] == [("/2", "accepted")]
    seen = await session.observe()
    assert seen.dialog is not None and seen.dialog.message == "/1"
    answered = await session.execute(AnswerDialog(accept=True, text="one"))
    assert [(dialog.message, dialog.answer) for dialog in answered.dialogs] == [("/1", "accepted")]
    assert "said again" in (await session.observe()).text
    await session.execute(FocusTab(index=0))
    assert "said one" in (await session.observe()).text


async def test_a_click_whose_own_dialog_is_answered_last_is_not_taken_for_hung(web: Web, opener: Opener) -> None:
    session = await opener()
    web[
        "/"
    ] = """<button onclick="window.open('/window', '', 'noopener'); p.textContent = prompt('first?')">Ask</button>
        <p id=p></p>"""
    web["/window"] = "<p>second page<script>onload = () => confirm('second?')</script>"
    seen = await visit(session, web.url())
    async with session.context.expect_event("dialog", lambda dialog: dialog.message == "second?"):
        opened = await session.execute(Click(ref=ref_of(seen, "Ask")))
    assert opened.reason is Reason.DIALOG_OPENED
    for message in ("second?", "first?"):
        seen = await session.observe()
        assert seen.dialog is not None and seen.dialog.message == message
        answered = await session.execute(AnswerDialog(accept=True, text="answered"))
        assert answered.status is Status.OK and [dialog.message for dialog in answered.dialogs] == [message]
    assert [tab.page.url for tab in session.tabs.all] == [web.url(), web.url("/window")]
    await session.execute(FocusTab(index=0))
    assert "answered" in (await session.observe()).text


async def test_the_dialog_of_a_tab_that_was_closed_is_forgotten(web: Web, opener: Opener) -> None:
    session = await opener()
    web["/1"] = web["/2"] = ASKING
    await visit(session, web.url("/1"))
    await session.execute(NewTab())
    await visit(session, web.url("/2"))
    await asks(session, session.tabs.front)
    assert (await session.observe()).dialog is not None
    await session.page.close()
    seen = await session.observe()
    assert seen.dialog is None and "none" in seen.text


async def test_answering_without_a_dialog_fails(opener: Opener) -> None:
    session = await opener()
    assert (await session.execute(AnswerDialog(accept=True))).status is Status.FAILED
