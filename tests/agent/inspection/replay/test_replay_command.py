"""`mira replay`: wrong input gives one line and exit code 2, before a browser is started."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from envs.core.actions import ActionResult, Click, Status, Stop, Type
from envs.core.tasks import TaskRef
from envs.core.trace import Commit, ElementKeyRecord, Footer, Header, Intent, ObservationRecord, Rating, Timings, Totals
from envs.core.trace_store import BlobStore, TraceWriter

SEEN = ObservationRecord(
    url="http://shop.test/", title="", digest="d" * 16, text_blob="", keys_blob="", controls_total=1
)
ROW = ElementKeyRecord(ref=1, frame="", role="textbox", name="Pin", ordinal=0, digest="0" * 8)


def write_trace(path: Path, suite: str = "miniwob", name: str = "click-test", **config: Any) -> Path:
    """A trace of three steps that ended as a failure without a key step."""
    header = Header(
        run_id="r",
        episode_id="e",
        task=TaskRef(suite=suite, name=name),
        instruction="Log in",
        category="c",
        start_url="http://shop.test/",
        config=config,
        versions={},
        started_at="",
    )
    actions = (Type(ref=1, text="<secret>PIN</secret>"), Click(ref=1), Stop())
    lines: list[Any] = [header]
    for step, action in enumerate(actions, 1):
        lines.append(Intent(step=step, seen=SEEN, rating=Rating(z=()), action=action, raw="", target=ROW, at=""))
        result = ActionResult(status=Status.STOPPED if isinstance(action, Stop) else Status.OK)
        lines.append(Commit(step=step, result=result, timings=Timings(), at=""))
    lines.append(Footer(outcome="failure", ended_by="stop", judged_by="none", totals=Totals(), at=""))
    with TraceWriter(path, BlobStore(path.parent / "blobs")) as trace:
        for line in lines:
            trace.append(line)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, without a display."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


SECRET = {"secrets": ["PIN=env:NOT_SET_HERE"]}
WRONG = [
    pytest.param({}, ["--from", "4"], "--from 4: the trace has 3 steps", id="from after the end"),
    pytest.param({}, ["--until", "9"], "--until 9", id="until after the end"),
    pytest.param({}, ["--from", "3", "--until", "2"], "--from 3 comes after --until 2", id="backwards"),
    pytest.param({}, ["--on-difference", "panic"], "'panic'", id="unknown flag"),
    pytest.param({}, ["--at", "2"], "--at needs --branch or --heal", id="at without branch"),
    pytest.param({}, ["--planner", "none"], "--planner needs --branch or --heal", id="planner without branch"),
    pytest.param({}, ["--heal", "oracle", "--branch", "oracle"], "use either --heal or --branch", id="heal and branch"),
    pytest.param({}, ["--heal", "oracle", "--at", "2"], "--at is for --branch", id="heal at a step"),
    pytest.param({}, ["--set", "a=b"], "--set needs --heal", id="texts without heal"),
    pytest.param({}, ["--heal", "oracle", "--set", "ab"], "--set 'ab': write OLD=NEW", id="one text"),
    pytest.param({}, ["--branch", "embedded"], "use --at STEP", id="no key step"),
    pytest.param({}, ["--branch", "embedded", "--at", "4"], "steps 1 to 3", id="at after the end"),
    pytest.param({}, ["--branch", "oracle:x", "--at", "2"], "'oracle:x'", id="unknown policy"),
    pytest.param({}, ["--headed"], "DISPLAY", id="no display"),
    pytest.param({"suite": "open"}, [], "allow it with --yes", id="live site"),
    pytest.param({"suite": "browsergym:webarena.310"}, [], "allow it with --yes", id="live gym"),
    pytest.param({"suite": "open"}, ["--branch", "embedded", "--at", "2"], "allow it with --yes", id="live branch"),
    pytest.param({"suite": "open"}, ["--yes"], "add --secret PIN=env:", id="secret not declared"),
    pytest.param({"suite": "open", **SECRET}, ["--yes"], "NOT_SET_HERE is not set", id="secret without value"),
    pytest.param({"suite": "open", **SECRET}, ["--yes", "--trace-zip"], "declared secrets", id="traced secrets"),
    pytest.param({"suite": "minibob"}, [], "'minibob'", id="unknown suite"),
    pytest.param({"unheard": 1}, [], "unknown key 'unheard'", id="config of another version"),
]


@pytest.mark.parametrize(("trace", "words", "message"), WRONG)
def test_wrong_input_is_one_line(
    trace: dict[str, Any], words: list[str], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_trace(here / "e.jsonl", **trace)
    _expect_one_line([str(path), *words], message, capsys)
    assert [entry.name for entry in here.iterdir()] == ["e.jsonl"]


def test_no_trace_is_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _expect_one_line(["nowhere.jsonl"], "holds no traces", capsys)
    bad = here / "bad.jsonl"
    bad.write_text('{"kind": "intent"}\n', encoding="utf-8")
    _expect_one_line([str(bad)], "bad.jsonl:1: kind", capsys)


def _expect_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as exit_:
        patch.setattr(sys, "argv", ["mira", "replay", *words])
        main()
    captured = capsys.readouterr()
    assert exit_.value.code == 2, captured
    assert message in captured.err and captured.err.count("\n") == 1 and not captured.out
