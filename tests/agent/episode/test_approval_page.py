"""Which actions on a real page need approval, compared with the requests that its server gets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent.config import ActionClass
from agent.episode.approval import ApprovalRequest
from agent.episode.policy import Turn
from agent.run.runner import run_open
from envs.core.actions import Action, Click, Drag, Goto, Press, Select, Stop, Type, Upload
from envs.core.observation import Observation
from tests.agent.shop import config, scripted

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]


class Counted:
    """A web server whose front page is `front`, and which counts what comes to it by any method but GET."""

    def __init__(self) -> None:
        self.front = ""
        self.changes: list[str] = []
        """Paths, in the order of arrival."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(outer.front if self.path == "/" else "<title>Page</title><p>Another page</p>")

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"] or 0))
                outer.changes.append(self.path)
                self._answer("<title>Done</title><p>Done</p>")

            do_PUT = do_DELETE = do_POST  # noqa: N815 - the names that the base class looks for

            def _answer(self, html: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(html.encode())))
                self.end_headers()
                self.wfile.write(html.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Counted]:
    served = Counted()
    yield served
    served.close()


@dataclass(frozen=True)
class Row:
    """A control by its accessible name, the markup around it, and what is expected of a click on it."""

    name: str
    html: str
    """`@` is the path to which the control sends what it sends."""
    asked: frozenset[ActionClass]
    sends: bool
    """Whether a click really changes something on the server."""


def row(name: str, html: str, *asked: ActionClass, sends: bool = False) -> Row:
    return Row(name, html, frozenset(asked), sends)


SEND = "fetch('@', {method: 'POST'})"
ROWS = (
    row(
        "Cancel subscription",
        "<form method=post action=@><button>Cancel subscription</button></form>",
        "submit",
        sends=True,
    ),
    row(
        "Close my account",
        "<form method=post action=@><input type=submit value='Close my account'></form>",
        "submit",
        sends=True,
    ),
    row(
        "Next step",
        "<form method=post action=@><input type=image alt='Next step' width=80 height=20></form>",
        "submit",
        sends=True,
    ),
    row("Previous page", "<form action=@><button formmethod=post>Previous page</button></form>", "submit", sends=True),
    row("Hide me", "<form id=f method=post action=@></form><button form=f>Hide me</button>", "submit", sends=True),
    row(
        "Delete everything",
        "<form method=post action=@><button>Delete everything</button></form>",
        "submit",
        sends=True,
    ),
    row("Search", "<form action=@><input name=q><button>Search</button></form>", "navigation"),
    row("Buy now", "<form action=@><button>Buy now</button></form>", "navigation"),
    row(
        "Show results",
        f'<form action=/page onsubmit="{SEND}; return false"><button>Show results</button></form>',
        "navigation",
        "submit",
        sends=True,
    ),
    row("Pay now", "<form method=post action=@><button type=button>Pay now</button></form>"),
    row("Remove all", "<form method=post action=@><button type=reset>Remove all</button></form>"),
    row("Close window", f'<button type=button onclick="{SEND}">Close window</button>', "submit", sends=True),
    row("More options", "<button type=button onclick=\"this.title = 'x'\">More options</button>", "submit"),
    row("Order again", "<button>Order again</button>"),
    row(
        "Dismiss message",
        "<div role=button tabindex=0 id=dismiss>Dismiss message</div>"
        "<script>dismiss.addEventListener('pointerup', () => fetch('@', {method: 'DELETE'}))</script>",
        "submit",
        sends=True,
    ),
    row(
        "More: pay now",
        f"<div id=more>More: pay now</div><script>more.addEventListener('click', () => {SEND})</script>",
        "submit",
        sends=True,
    ),
    row(
        "Expand thread",
        "<ul id=list><li><button type=button>Expand thread</button></ul>"
        "<script>list.addEventListener('click', () => fetch('@', {method: 'PUT'}))</script>",
        "submit",
        sends=True,
    ),
    row("About us", "<a href=@>About us</a>", "navigation"),
    row("Delete my data", "<a href=@>Delete my data</a>", "navigation"),
    row("Top of the page", "<a href='#top'>Top of the page</a>", "navigation"),
    row(
        "Back to the shop",
        f'<a href=/page onclick="{SEND}; return false">Back to the shop</a>',
        "navigation",
        "submit",
        sends=True,
    ),
    row("Cancel order", f'<a href="javascript:{SEND}; void 0">Cancel order</a>', "navigation", "submit", sends=True),
    row("Continue reading", "<a href=/page ping=@>Continue reading</a>", "navigation"),
    row("Monthly report", "<a href=@ download>Monthly report</a>", "navigation", "download"),
    row(
        "Remove from list",
        "<nav id=nav><a href='#x' data-method=delete>Remove from list</a></nav><script>"
        "nav.addEventListener('click', e => e.target.dataset.method && fetch('@', {method: 'DELETE'}))</script>",
        "navigation",
        "submit",
        sends=True,
    ),
    row("Write to us", "<a href='mailto:a@b.example'>Write to us</a>", "navigation", "submit"),
    row("I agree", "<label><input type=checkbox>I agree</label>"),
    row("Show archived", f'<label><input type=checkbox onchange="{SEND}">Show archived</label>', "submit", sends=True),
    row(
        "Collapse panel",
        "<form method=post action=@><label for=go><span role=button tabindex=0>Collapse panel</span></label>"
        "<input type=submit id=go aria-label=Go></form>",
        "submit",
        sends=True,
    ),
    row(
        "Not now", "<dialog open style='position: static'><form method=dialog><button>Not now</button></form></dialog>"
    ),
)
PATHS = {one.name: f"/row-{number}" for number, one in enumerate(ROWS, start=1)}


def thirty() -> str:
    blocks = (f"<div>{one.html.replace('@', PATHS[one.name])}</div>" for one in ROWS)
    return f"<!doctype html><title>Thirty</title><style>#more {{ cursor: pointer }}</style>{''.join(blocks)}"


def ref(observation: Observation, name: str) -> int:
    (ref,) = [one.ref for one in observation.elements if one.key.name == name]
    return ref


def click_all(url: str) -> list[Action | str]:
    """The page opened again and one control clicked, for every row; a name stands for the click on it."""
    return [step for one in ROWS for step in (Goto(url=url), one.name)]


@pytest.mark.slow
async def test_the_thirty_are_asked_about_by_what_they_do_and_never_by_their_names(
    server: Counted, tmp_path: Path
) -> None:
    """Symptom: "Cancel subscription" and "Close my account" were sent unasked, and plain links were asked about."""
    assert len(ROWS) == 30
    server.front = thirty()
    steps = click_all(server.url)
    clicked: list[str] = []
    asked: dict[str, tuple[ActionClass, ...]] = {}

    def policy(turn: Turn) -> Action:
        step = steps[turn.step - 1] if turn.step <= len(steps) else Stop()
        if isinstance(step, str):
            clicked.append(step)
            return Click(ref=ref(turn.view.observation, step))
        return step

    async def person(request: ApprovalRequest) -> bool:
        if request.action.startswith("click"):
            asked[clicked[-1]] = request.classes
        return True

    settings = config(approve=("submit", "navigation", "download"), limits={"max_steps": 100}, retry_temperature=0)
    run = await run_open(settings, "Click", server.url, tmp_path, policy=scripted(policy), approver=person)
    assert run.episodes[0].ended_by == "stop"
    decisions = {one.name: frozenset(asked.get(one.name, ())) for one in ROWS}
    assert decisions == {one.name: one.asked for one in ROWS}
    sent = {name for name, path in PATHS.items() if path in server.changes}
    assert sent == {one.name for one in ROWS if one.sends}, "the negative control: they do what the table says"
    assert all("submit" in decisions[name] for name in sent)


BUTTON = "<form method=post action=/x><button id=more>More</button></form><script>more.focus()</script>"
"""The script focuses the button at once; `autofocus` takes effect with a later frame."""
SORT = "<form method=post action=/x><select aria-label=More onchange='form.submit()'><option>a<option>b</select></form>"
FILE = "<form method=post action=/x><input type=file aria-label=More onchange='form.submit()'></form>"
AMOUNT = "<form method=post action=/x oninput='submit()'><input aria-label=More></form>"
WAYS = [
    pytest.param(BUTTON, Click(ref=1), id="click"),
    pytest.param(BUTTON, Type(ref=1, text="x"), id="type on a button"),
    pytest.param(BUTTON, Type(ref=1, text="\r"), id="type a line break on a button"),
    pytest.param(BUTTON, Press(keys="Enter"), id="press Enter"),
    pytest.param(BUTTON, Press(keys="\n"), id="press a line feed"),
    pytest.param(BUTTON, Press(keys="\r"), id="press a carriage return"),
    pytest.param(BUTTON, Press(keys=" "), id="press a blank"),
    pytest.param(BUTTON, Press(keys="NumpadEnter"), id="press the other Enter"),
    pytest.param(BUTTON, Drag(ref=1, to_ref=1), id="drag onto itself"),
    pytest.param(BUTTON, Upload(ref=1, path="a.txt"), id="upload to a button"),
    pytest.param(SORT, Select(ref=1, option="b"), id="select what submits"),
    pytest.param(FILE, Upload(ref=1, path="a.txt"), id="upload what submits"),
    pytest.param(AMOUNT, Type(ref=1, text="3"), id="type what submits"),
]


@pytest.mark.parametrize("answer", [False, True], ids=["declined", "approved"])
@pytest.mark.parametrize(("front", "action"), WAYS)
async def test_no_choice_of_action_sends_a_form_unasked(
    server: Counted, tmp_path: Path, front: str, action: Action, answer: bool
) -> None:
    """Symptom: typing on a button clicked it without a question, and so did Press of a line break and Drag."""
    server.front = f"<!doctype html><title>Form</title>{front}"
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.txt").write_text("a", encoding="utf-8")
    asked: list[str] = []

    async def person(request: ApprovalRequest) -> bool:
        asked.append(request.action)
        return answer

    settings = config(approve=("submit",), session={"upload_folder": files})
    await run_open(settings, "x", server.url, tmp_path, policy=scripted([action, Stop()]), approver=person)
    assert len(asked) == 1
    assert server.changes == ["/x"] * answer, "approved, it does send the form"


CHAT = """<!doctype html><title>Chat</title><div contenteditable aria-label=Message style="height: 40px"></div><script>
document.addEventListener('keydown', e => e.key === 'Enter' && fetch('/sent', {method: 'POST'}))</script>"""


@pytest.mark.parametrize("text", ["a\rb", "a\r", "\r", "a\nb", "a\r\nb"])
async def test_a_line_break_in_typed_text_is_not_the_enter_key(server: Counted, tmp_path: Path, text: str) -> None:
    """Symptom: a carriage return in the text of a `type` pressed Enter, though `enter` was not asked for."""
    server.front = CHAT
    script = [Type(ref=1, text=text), Press(keys="Enter")]
    await run_open(config(), "x", server.url, tmp_path, policy=scripted([*script[:1], Stop()]))
    assert server.changes == []
    await run_open(config(), "x", server.url, tmp_path, policy=scripted([*script, Stop()]))
    assert server.changes == ["/sent"], "the negative control"
