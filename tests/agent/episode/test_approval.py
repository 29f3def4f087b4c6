"""Which actions need approval, by the effect of their element."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from agent.episode.approval import ActionClass, classes_of, needs_approval
from envs.core.actions import (
    Action,
    ActionResult,
    AnswerDialog,
    Back,
    Click,
    ClickAt,
    Drag,
    DragAt,
    Find,
    Goto,
    Hover,
    Press,
    Scroll,
    Select,
    Status,
    Stop,
    Type,
    Upload,
    Wait,
)
from envs.core.observation import Effect, Element, ElementKey, InputKind, Observation
from envs.core.past_actions import PastAction
from tests.timing import HANG_S

HARMLESS = Effect("", "", "", frozenset())
POST, GET = replace(HARMLESS, sends="post"), replace(HARMLESS, sends="get")
LINK, FIELD = replace(HARMLESS, leads="page"), replace(HARMLESS, takes="text")
LISTENED = replace(HARMLESS, listened=frozenset[InputKind]({"press"}))


def page(
    role: str = "button",
    name: str = "Send",
    tag: str = "button",
    effect: Effect | None = POST,
    *,
    states: tuple[str, ...] = (),
    frame: str = "",
) -> Observation:
    key = ElementKey(frame, role, name, 0, "0" * 8)
    element = Element(1, key, tag, states, None, (), None, True, effect)
    return Observation("http://a.example/", "", "", (element,), (), "0" * 16, (800, 600), (0, 0), 1)


def focused(role: str, effect: Effect | None, frame: str = "") -> Observation:
    return page(role, "x", "input", effect, states=("focused",), frame=frame)


def listened(effect: Effect, *what: InputKind) -> Effect:
    return replace(effect, listened=frozenset(what))


LINKED = page("link", "Pay now", "a", LINK)
FILE = replace(HARMLESS, takes="file")
CHOICE = replace(HARMLESS, takes="choice")
CASES = [
    pytest.param(Click(ref=1), page(), {"submit"}, id="posts"),
    pytest.param(Click(ref=1), page(name="Cancel subscription"), {"submit"}, id="posts-though-it-says-cancel"),
    pytest.param(Click(ref=1), page(name="Close my account", tag="input"), {"submit"}, id="input-posts"),
    pytest.param(Click(ref=1), page(name="More: pay now"), {"submit"}, id="posts-though-it-says-more"),
    pytest.param(Click(ref=1), page(name="Delete", effect=GET), {"navigation"}, id="a-form-sent-by-get-loads-a-page"),
    pytest.param(Click(ref=1), page(name="Pay", effect=HARMLESS), set(), id="a-button-that-does-nothing"),
    pytest.param(Click(ref=1), page(name="Close", effect=LISTENED), {"submit"}, id="a-script-listens-to-it"),
    pytest.param(Click(ref=1), page(name="Close", effect=None), {"submit"}, id="nothing-is-known"),
    pytest.param(Click(ref=1), page(effect=replace(HARMLESS, sends="dialog")), set(), id="closes-a-dialog"),
    pytest.param(Click(ref=1), page(effect=replace(HARMLESS, sends="other")), {"submit"}, id="form-without-address"),
    pytest.param(Click(ref=1), LINKED, {"navigation"}, id="a-plain-link-only-leads"),
    pytest.param(
        Click(ref=1), page("link", "Next", "a", listened(LINK, "press")), {"navigation", "submit"}, id="listened"
    ),
    pytest.param(
        Click(ref=1),
        page("link", "x", "a", replace(HARMLESS, leads="other")),
        {"navigation", "submit"},
        id="javascript",
    ),
    pytest.param(
        Click(ref=1), page("link", "x", "a", replace(HARMLESS, leads="file")), {"navigation", "download"}, id="download"
    ),
    pytest.param(Click(ref=1), page("", "Order", "div", LISTENED), {"submit"}, id="clickable-div"),
    pytest.param(Click(ref=1), page("checkbox", "Agree", "input", HARMLESS), set(), id="checkbox"),
    pytest.param(Click(ref=1), page("textbox", "Name", "input", FIELD), set(), id="textbox"),
    pytest.param(Click(ref=1), page("button", "Download report"), {"submit", "download"}, id="download-button"),
    pytest.param(Click(ref=9), page(), set(), id="no-such-ref"),
    pytest.param(Type(ref=1, text="x"), page("textbox", "Name", "input", FIELD), set(), id="type"),
    pytest.param(Type(ref=1, text="x", enter=True), page(effect=FIELD), {"submit"}, id="type-enter"),
    pytest.param(Type(ref=1, text="x"), page(), {"submit"}, id="type-on-a-button-clicks-it"),
    pytest.param(Type(ref=1, text="x"), LINKED, {"navigation", "submit"}, id="type-on-a-link-clicks-it"),
    pytest.param(Type(ref=1, text="x"), page(effect=listened(FIELD, "edit")), {"submit"}, id="type-is-listened-to"),
    pytest.param(Type(ref=1, text="x"), page(effect=None), {"submit"}, id="type-on-who-knows-what"),
    pytest.param(Select(ref=1, option="b"), page("combobox", "S", "select", CHOICE), set(), id="select"),
    pytest.param(
        Select(ref=1, option="b"), page(effect=listened(CHOICE, "edit")), {"submit"}, id="select-is-listened-to"
    ),
    pytest.param(Select(ref=1, option="b"), page(effect=None), {"submit"}, id="select-who-knows-what"),
    pytest.param(Drag(ref=1, to_ref=1), page(), {"submit"}, id="drag-onto-itself"),
    pytest.param(Drag(ref=1, to_ref=1), LINKED, {"submit", "navigation"}, id="drag-a-link"),
    pytest.param(DragAt(x=1, y=1, to_x=1, to_y=1), page(), {"submit", "navigation", "download"}, id="drag-at-point"),
    *(
        pytest.param(Press(keys=keys), focused("textbox", FIELD), {"submit"}, id=f"press-{keys!r}")
        for keys in (
            "Enter",
            "Control+Enter",
            "Shift+Enter",
            "NumpadEnter",
            "\n",
            "\r",
            "Alt+ArrowLeft",
            "F5",
            "Return",
        )
    ),
    *(
        pytest.param(Press(keys=keys), focused("textbox", FIELD), set(), id=f"press-{keys}-in-a-field")
        for keys in ("x", "A", "+", "Space", " ", "Backspace", "Control+V", "Control+X", "ArrowLeft", "Tab", "Home")
    ),
    *(
        pytest.param(Press(keys=keys), page(), {"submit"}, id=f"press-{keys}-no-field-has-the-focus")
        for keys in ("x", "#", "Space", " ", "Delete", "Control+V", "Control+S", "Meta+Z")
    ),
    *(
        pytest.param(Press(keys=keys), page(), set(), id=f"press-{keys}-anywhere")
        for keys in ("Control+A", "Meta+c", "Tab", "Shift+Tab", "Escape", "PageDown", "ArrowDown", "Control+Home")
    ),
    pytest.param(Press(keys="x"), focused("textbox", listened(FIELD, "edit")), {"submit"}, id="press-is-listened-to"),
    pytest.param(Press(keys="x"), focused("textbox", FIELD, "0"), {"submit"}, id="press-in-a-frame"),
    pytest.param(Press(keys="ArrowDown"), focused("radio", listened(HARMLESS, "edit")), {"submit"}, id="press-chooses"),
    pytest.param(Press(keys="ArrowDown"), focused("radio", HARMLESS), set(), id="press-chooses-unheard"),
    pytest.param(ClickAt(x=1, y=1), page(), {"submit", "navigation", "download"}, id="click-at-point"),
    pytest.param(AnswerDialog(accept=True), page(), {"submit"}, id="accept-dialog"),
    pytest.param(AnswerDialog(accept=False), page(), set(), id="dismiss-dialog"),
    pytest.param(Goto(url="http://a.example/"), page(), {"navigation"}, id="goto"),
    pytest.param(Goto(url="http://a.example/report.csv?x=1"), page(), {"navigation", "download"}, id="goto-file"),
    pytest.param(Goto(url="http://a.example/v1.2/index.php"), page(), {"navigation"}, id="goto-page"),
    pytest.param(Goto(url="http://[/report.csv"), page(), {"navigation"}, id="goto-nowhere"),
    pytest.param(
        Click(ref=1), page("link", "Report 2024.pdf", "a", LINK), {"navigation", "download"}, id="link-named-as-a-file"
    ),
    pytest.param(Back(), page(), {"navigation"}, id="back"),
    pytest.param(Upload(ref=1, path="a"), page(effect=FILE), {"upload"}, id="upload"),
    pytest.param(Upload(ref=1, path="a"), page(), {"upload", "submit"}, id="upload-clicks-what-is-no-file-input"),
    pytest.param(
        Upload(ref=1, path="a"), page(effect=listened(FILE, "edit")), {"upload", "submit"}, id="upload-is-listened-to"
    ),
    pytest.param(Scroll(direction="down"), page(), set(), id="scroll"),
    pytest.param(Hover(ref=1), page(), set(), id="hover"),
    pytest.param(Hover(ref=1), page(effect=listened(LINK, "hover")), {"submit"}, id="hover-is-listened-to"),
]


@pytest.mark.parametrize(("action", "observation", "expected"), CASES)
def test_classes(action: Action, observation: Observation, expected: set[ActionClass]) -> None:
    assert classes_of(action, observation) == expected


ODD_KEYS = (
    "\n",
    "\r",
    "\r\n",
    "\t",
    "\0",
    "\u2028",
    "Enter",
    "enter",
    "NumpadEnter",
    "Shift+Enter",
    "Control+\n",
    "Enter+",
    "a\n",
    "Tab\n",
    "Tab+Enter",
    "Control+A+Enter",
    "Alt+S",
    "F5",
    "BrowserBack",
    "Accept",
    "Unknown",
    "+Enter",
)


@pytest.mark.parametrize("keys", ODD_KEYS)
@pytest.mark.parametrize(
    "observation", [page(), focused("textbox", FIELD), focused("button", POST)], ids=["page", "field", "button"]
)
def test_keys_that_are_not_known_to_send_nothing_are_asked_about(keys: str, observation: Observation) -> None:
    """Symptom: a line feed pressed Enter, and needed no approval."""
    assert classes_of(Press(keys=keys), observation) == {"submit"}


def test_only_the_configured_classes_are_asked_about() -> None:
    assert needs_approval(Click(ref=1), page(), ("upload",)) == ()
    assert needs_approval(Click(ref=1), page(), ("submit", "upload")) == ("submit",)
    assert needs_approval(Click(ref=1), page(), ()) == ()


@pytest.mark.parametrize("action", [Stop(), Wait(), Find(text="x")])
def test_all_leaves_out_what_does_not_touch_the_page(action: Action) -> None:
    assert needs_approval(action, page(), ("all",)) == ()


def test_all_asks_about_everything_else() -> None:
    assert needs_approval(Hover(ref=1), page(), ("all",)) == ("all",)


def past(action: Action, name: str, unapproved: int = 0) -> PastAction:
    result = ActionResult(status=Status.OK, unapproved_downloads=unapproved)
    return PastAction(action, ElementKey("", "link", name, 0, "0" * 8), result)


def test_what_let_a_file_down_before_is_asked_about() -> None:
    observation = page("link", "Report", "a")
    assert needs_approval(Click(ref=1), observation, ("download",), [past(Click(ref=4), "Report")]) == ()
    assert needs_approval(Click(ref=1), observation, ("download",), [past(Click(ref=4), "Other", 1)]) == ()
    assert needs_approval(Click(ref=1), observation, ("download",), [past(Click(ref=4), "Report", 1)]) == ("download",)
    reported_late = [past(Click(ref=4), "Report"), PastAction(Wait(), None, past(Wait(), "", 1).result)]
    assert needs_approval(Click(ref=1), observation, ("download",), reported_late) == ("download",)


ASKS = """
import asyncio, signal
from pathlib import Path
from agent.episode.approval import ApprovalRequest
from agent.cli.output import stdout
from agent.cli.run import approver
from agent.cli.display import RunDisplay
from agent.progress import RunStarted

def request(number):
    return ApprovalRequest(
        episode_id="e", step=number, action=f"act {number}", classes=("submit",), url="http://a/", instruction="x"
    )

async def main():
    # As a run does. Without it a signal is lost if it arrives just before the event loop starts to wait.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, asyncio.current_task().cancel)
    with RunDisplay(stdout) as display:
        display(RunStarted("r", Path("r"), planned=2, finished=0))
        ask = approver(display, as_json=False)
        said = await asyncio.gather(ask(request(1)), ask(request(2)))
    print("SAID", said, flush=True)

asyncio.run(main())
"""


ERASES = re.compile(r"\x1b\[(\d*A|2K|\d*J)")
"""What moves the cursor up, or clears a line or the screen."""


class Terminal:
    """A process with a terminal of its own, at whose other end somebody types."""

    def __init__(self, script: str = ASKS) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", script], stdin=theirs, stdout=theirs, stderr=theirs, cwd=Path(__file__).parents[3]
        )
        os.close(theirs)
        self.shown = ""

    def read_until(self, text: str, times: int = 1) -> None:
        with suppress(OSError):  # the other end is closed
            while self.shown.count(text) < times:
                self.shown += os.read(self._ours, 1_000).decode()
        assert self.shown.count(text) >= times, self.shown

    def read_for(self, seconds: float) -> None:
        """Whatever comes within *seconds*."""
        end = time.monotonic() + seconds
        while select.select([self._ours], [], [], max(0.0, end - time.monotonic()))[0]:
            self.shown += os.read(self._ours, 1_000).decode()

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal()
    yield opened
    opened.close()


def test_workers_that_ask_at_once_get_their_own_answers(terminal: Terminal) -> None:
    terminal.read_until("allow (submit)?")
    assert "act 1" in terminal.shown and "act 2" not in terminal.shown, "one at a time"
    terminal.type("y\n")
    terminal.read_until("allow (submit)?", times=2)
    assert "act 2" in terminal.shown
    terminal.type("n\n")
    terminal.read_until("SAID [True, False]")


def test_an_interrupt_does_not_wait_for_an_answer(terminal: Terminal) -> None:
    terminal.read_until("allow (submit)?")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.process.wait(timeout=HANG_S) != 0


def test_the_question_stands_until_it_is_answered(terminal: Terminal) -> None:
    """The table that is drawn eight times a second erased it, and the run seemed to hang."""
    terminal.read_until("allow (submit)?")
    terminal.read_for(1.0)
    asked = terminal.shown.rindex("act 1")
    assert "episodes" in terminal.shown[:asked], "the table was drawn"
    assert not ERASES.search(terminal.shown[asked:]) and "episodes" not in terminal.shown[asked:]
    terminal.type("y\n")
    terminal.read_until("allow (submit)?", times=2)
    answered = terminal.shown.index("allow (submit)?")
    drawn = terminal.shown.index("episodes", answered)
    assert drawn < terminal.shown.index("act 2"), "drawn again between the questions"
    assert not ERASES.search(terminal.shown[answered:drawn]), "nothing of the first question is erased"


HELD = """
from envs.security.held_requests import HeldRequest

def request(number):
    held = HeldRequest(method="POST", url="http://a/lock", fields=(("topic", "5"), ("why", "x\\x1b[2Jy")))
    return ApprovalRequest(
        episode_id="e", step=number, action="scroll down", classes=("submit",), url="http://a/", instruction="x",
        requests=(held,) * number,
    )
"""


def test_held_requests_are_shown_with_address_and_fields() -> None:
    before, after = ASKS.split("async def main")
    terminal = Terminal(f"{before}{HELD}\nasync def main{after}")
    try:
        terminal.read_until("allow (submit)?")
        assert "step 1 (scroll down) is about to send a request  at http://a/" in terminal.shown
        assert "POST http://a/lock with topic=5, why=" in terminal.shown
        assert "\x1b[2Jy" not in terminal.shown, "page text controls no terminal"
        terminal.type("n\n")
        terminal.read_until("is about to send 2 requests")
        terminal.read_until("allow (submit)?", times=2)
        terminal.type("y\n")
        terminal.read_until("SAID [False, True]")
    finally:
        terminal.close()
