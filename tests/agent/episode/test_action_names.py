"""Live output, `mira show` and `mira replay` name the elements of steps."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pydantic import JsonValue
from rich.console import Console

from agent.cli.display import RunDisplay
from agent.episode.action_names import NAME_CHARS, in_words
from agent.progress import EpisodeStarted, RunStarted, StepDone
from envs.core import actions as act
from envs.core.action_place import ActionPlace
from envs.core.actions import Action, ActionResult, Drag, Status
from envs.core.observation import ElementKey
from envs.core.tasks import Milestone, TaskRef
from envs.core.trace import (
    Commit,
    ElementKeyRecord,
    Footer,
    Header,
    Intent,
    ObservationRecord,
    PlanRecord,
    Rating,
    Timings,
    Totals,
)
from envs.core.trace_store import BlobStore
from tests.mira_command import mira

SAVE = ElementKey("", "button", "Save", 0, "0" * 8)
NAME = ElementKey("", "textbox", "Full\n name", 0, "0" * 8)
BIN = ElementKey("", "", "Bin", 0, "0" * 8)

WORDS: list[tuple[Action, ElementKey | None, str]] = [
    (act.Click(ref=9), SAVE, 'click button "Save"'),
    (act.Click(ref=9), None, "click element 9"),
    (act.Click(ref=9, count=2), SAVE, 'double-click button "Save"'),
    (act.Click(ref=9, button="right"), SAVE, 'right-click button "Save"'),
    (act.Type(ref=9, text="bob"), NAME, 'type "bob" into textbox "Full name"'),
    (act.Type(ref=9, text="<secret>PW</secret>"), NAME, 'type "<secret>PW</secret>" into textbox "Full name"'),
    (
        act.Type(ref=9, text="bob", clear=False, enter=True),
        NAME,
        'append "bob" into textbox "Full name" and press Enter',
    ),
    (act.Select(ref=9, option="M"), NAME, 'select "M" in textbox "Full name"'),
    (act.Hover(ref=9), SAVE, 'hover over button "Save"'),
    (act.Press(keys="Control+A"), None, "press Control+A"),
    (act.Scroll(direction="down"), None, "scroll down"),
    (act.Scroll(direction="up", ref=3), BIN, 'scroll up in element "Bin"'),
    (act.Drag(ref=9, to_ref=4), SAVE, 'drag button "Save" onto element 4'),
    (act.Upload(ref=9, path="a.txt"), NAME, 'upload "a.txt" to textbox "Full name"'),
    (act.ClickAt(x=10, y=20.5), None, "click at (10, 20.5)"),
    (act.DragAt(x=1, y=2, to_x=3, to_y=4), None, "drag from (1, 2) to (3, 4)"),
    (act.ScrollAt(x=1, y=2, dy=100), None, "scroll by (0, 100) at (1, 2)"),
    (act.Find(text="total"), None, 'find "total"'),
    (act.Expand(group="g1", start=29), None, "expand group g1 from row 29"),
    (act.Wait(), None, "wait"),
    (act.AnswerDialog(accept=True, text="yes"), None, 'accept the dialog with "yes"'),
    (act.AnswerDialog(accept=False), None, "dismiss the dialog"),
    (act.Goto(url="http://shop.test/"), None, "go to http://shop.test/"),
    (act.Back(), None, "go back"),
    (act.Forward(), None, "go forward"),
    (act.NewTab(), None, "open a new tab"),
    (act.CloseTab(), None, "close the tab"),
    (act.FocusTab(index=1), None, "switch to tab 1"),
    (act.UseTool(tool="code", input="ann"), None, 'use tool code with "ann"'),
    (act.UseTool(tool="check"), None, "use tool check"),
    (act.Stop(), None, "stop"),
    (act.Stop(answer="4737"), None, 'stop with the answer "4737"'),
]


@pytest.mark.parametrize(("action", "target", "words"), WORDS, ids=[words for *_, words in WORDS])
def test_an_action_in_words(action: Action, target: ElementKey | None, words: str) -> None:
    assert in_words(action, target) == words


def test_every_kind_of_action_has_words() -> None:
    kinds = {kind.model_fields["kind"].default for kind in act.Action.__origin__.__args__}  # pyright: ignore
    assert {action.kind for action, *_ in WORDS} == kinds


def test_a_drag_names_both_its_ends_and_a_long_name_is_cut() -> None:
    assert in_words(Drag(ref=9, to_ref=4), SAVE, BIN) == 'drag button "Save" onto element "Bin"'
    long = ElementKey("", "link", "x" * 500, 0, "0" * 8)
    assert in_words(act.Click(ref=9), long) == f'click link "{"x" * (NAME_CHARS - 1)}…"'


def test_the_live_display_names_the_element_of_a_step() -> None:
    """On a pipe a line a step, on a terminal the row of its worker; control characters of a name are replaced."""
    step = StepDone(
        episode_id="e",
        step=1,
        action='do(action="Click", element="9")',
        words='click button "Save\x1b[2J"',
        status=Status.OK,
        milestone="Saved\x1b[2J",
        z=(False,),
        seconds=1.0,
    )
    for is_terminal in (False, True):
        console = Console(file=io.StringIO(), force_terminal=is_terminal, width=120)
        display = RunDisplay(console)
        with console.capture() as printed:
            display(RunStarted("r", Path("r"), planned=1, finished=0))
            display(EpisodeStarted("e", TaskRef(suite="miniwob", name="click-test"), 1, 0, "Save"))
            display(step)
            if is_terminal:
                console.print(display.board())
        assert 'click button "Save\\x1b[2J"' in printed.get() and "\x1b[2J" not in printed.get()
        assert is_terminal or printed.get() == (
            '  step 1: click button "Save\\x1b[2J"  do(action="Click", element="9")  (ok)\n'
        )


def seen(url: str, keys_blob: str = "") -> ObservationRecord:
    return ObservationRecord(url=url, title="", digest="0" * 16, text_blob="", keys_blob=keys_blob, controls_total=2)


def write_trace(folder: Path) -> Path:
    """Two steps on two pages, a milestone that was reached, one that was not, and a judge's NO."""
    rows: list[JsonValue] = [
        ElementKeyRecord(ref=2, frame="", role="listitem", name="Bin", ordinal=0, digest="0" * 8).model_dump()
    ]
    keys = BlobStore(folder / "blobs").put_json(rows)
    at, task = "2026-01-01T00:00:00Z", TaskRef(suite="open", name="open")
    milestones = (Milestone(id="m1", text="The file is chosen"), Milestone(id="m2", text="The file is in the bin"))
    target = ElementKeyRecord(ref=1, frame="", role="link", name="report.txt", ordinal=0, digest="0" * 8)
    done = Rating(z=(True, False), flips=({"milestone": "m1", "achieved": True, "evidence": "1 chosen"},))  # pyright: ignore
    stale = ActionResult(status=Status.STALE, message="the element is gone")
    lines = [
        Header(
            run_id="r", episode_id="e", task=task, instruction="Throw the report away", category="",
            start_url="http://files.test/", config={}, versions={}, started_at=at,
        ),
        PlanRecord(step=1, cause="initial", milestones=milestones, planner="openai:m"),
        Intent(
            step=1, seen=seen("http://files.test/list"), rating=Rating(z=(False, False)),
            action=act.Click(ref=1), raw="", target=target, at=at,
        ),
        Commit(step=1, result=ActionResult(status=Status.OK), timings=Timings(), at=at),
        Intent(
            step=2, seen=seen("http://files.test/file?name=report.txt", keys), rating=done,
            action=Drag(ref=1, to_ref=2), raw="", target=target, at=at,
        ),
        Commit(step=2, result=stale, timings=Timings(), at=at),
        Footer(
            outcome="failure", ended_by="max_steps", judged_by="judge", verdict="NO: the file is still in the list",
            answer="it is gone", rating=Rating(z=(True, False)), totals=Totals(steps=2), at=at,
        ),
    ]  # fmt: skip
    path = folder / "episodes" / "e.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(line.model_dump_json() + "\n" for line in lines), encoding="utf-8")
    return path


def test_show_tells_element_names_milestones_urls_and_the_judges_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert mira(monkeypatch, "show", "--wide", str(write_trace(tmp_path))) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in (
        "start http://files.test/",
        "planned by openai:m",
        "● The file is chosen step 1 1 chosen",
        "○ The file is in the bin -",
        "1 http://files.test/list ok",
        'click link "report.txt" do(action="Click", element="1") ✓ The file is chosen',
        "2 http://files.test/file?name=report.txt stale the element is gone ●○",
        'drag link "report.txt" onto listitem "Bin"',
        "failure, ended by max_steps, judged by judge",
        "answer it is gone",
        "judge NO: the file is still in the list",
    ):
        assert text in printed


def test_an_action_in_words_says_where_its_element_is() -> None:
    place = ActionPlace(where='in row "Invoice 17"')
    assert in_words(act.Click(ref=9), SAVE, place=place) == 'click button "Save" in row "Invoice 17"'
    assert in_words(act.ClickAt(x=3, y=4), None, place=ActionPlace(at='link "Home"')) == 'click at (3, 4) (link "Home")'
