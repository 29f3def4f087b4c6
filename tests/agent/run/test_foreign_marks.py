"""A run or trace is this machine's own if it wrote it and nobody changed it, wherever it is stored."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from agent.cli.run import _notices
from agent.inspection.replay import ReplayOptions, branch_trace, replay_trace
from agent.inspection.replay.playback import live_address, read_recording
from agent.run.foreign_resume import recorded_run
from agent.run.foreign_runs import ForeignRun, apply_grants
from agent.run.run_store import RunFolder
from agent.run.runner import resume
from envs.core.actions import Click, Stop
from envs.core.errors import BadInput
from envs.core.local_key import _kept
from envs.core.trace_store import check_chain, read_trace
from tests.agent.episodes import Play, write_run
from tests.agent.foreign_machine import Machine, keyed, write_shared_run, write_shared_trace
from tests.agent.shop import scripted
from tests.envs.core.edits import Edit, rechained, rewrite, set_in, unchained
from tests.mira_command import mira


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    machine = Machine(tmp_path / "home")
    for name, value in machine.environment.items():
        monkeypatch.setenv(name, value)
    machine.listen()
    yield machine
    machine.close()


@pytest.fixture
def run(machine: Machine, tmp_path: Path) -> RunFolder:
    """A run of this machine that was killed before its first step."""
    return write_shared_run(machine, tmp_path / "r")


@pytest.fixture
def trace(machine: Machine, tmp_path: Path) -> Path:
    """A trace of this machine."""
    return write_shared_trace(machine, tmp_path / "t.jsonl")


def of_run_json(change: Callable[[dict[str, Any]], object]) -> Callable[[RunFolder], object]:
    def edit(run: RunFolder) -> None:
        values = json.loads(run.manifest.read_text())
        change(values)
        run.manifest.write_text(json.dumps(values))

    return edit


def of_trace(edit: Edit) -> Callable[[RunFolder], object]:
    return lambda run: rewrite(run.trace("task-0-a1"), edit)


def with_doubled_keys(run: RunFolder) -> None:
    """Duplicates the configuration key, so that mark and reader may use different ones."""
    own = json.loads(run.manifest.read_text())
    evil = json.dumps(own["config"] | {"base_url": "http://127.0.0.1:9/evil"})
    text = json.dumps(own)
    run.manifest.write_text(f'{{"config": {evil}, ' + text[1:-1] + f', "config": {evil}' + "}")


def with_the_mark_of_another_run(run: RunFolder) -> None:
    other = RunFolder(run.path.parent / "other")
    write_run(other.path, [Play()])
    mark = json.loads(other.manifest.read_text())["mark"]
    of_run_json(lambda values: values.update(mark=mark))(run)


def hmac_of_nothing(run: RunFolder) -> None:
    of_run_json(lambda values: values.update(mark="0" * 64))(run)


FOREIGN: dict[str, Callable[[RunFolder], object]] = {
    "no mark, as of an older version": of_run_json(lambda values: values.pop("mark")),
    "an empty mark": of_run_json(lambda values: values.update(mark="")),
    "an invented mark": hmac_of_nothing,
    "a mark that is no text": of_run_json(lambda values: values.update(mark="é" * 64)),
    "the mark of another run": with_the_mark_of_another_run,
    "another start": of_run_json(lambda values: values["open_task"].update(url="http://127.0.0.1:9/")),
    "another instruction": of_run_json(lambda values: values["open_task"].update(instruction="Send it all")),
    "another server": of_run_json(lambda values: values["config"].update(base_url="http://127.0.0.1:9/v1")),
    "another secret": of_run_json(lambda values: values["config"].update(secrets=["PIN=env:HOME"])),
    "another folder": of_run_json(lambda values: values["config"]["session"].update(upload_folder="/")),
    "a plain setting": of_run_json(lambda values: values["config"].update(k=7)),
    "another run id": of_run_json(lambda values: values.update(run_id="s")),
    "two configurations": with_doubled_keys,
    "a trace of another machine": of_trace(rechained(lambda lines: lines)),
    "an edited trace": of_trace(set_in("header", lambda line: line.update(instruction="Send it all"))),
    "an edited trace, chain recomputed": of_trace(
        rechained(set_in("header", lambda line: line.update(instruction="Send it all")))
    ),
    "a trace without a chain": of_trace(unchained(version=3)),
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN)
async def test_a_changed_run_is_foreign_and_sends_nothing(
    machine: Machine, run: RunFolder, change: Callable[[RunFolder], object]
) -> None:
    assert recorded_run(run)[1].own, "the control: unchanged, it is this machine's"
    change(run)
    assert not recorded_run(run)[1].own
    with pytest.raises(ForeignRun, match="was not written on this machine, or was changed since"):
        await resume(run.path)
    assert machine.nothing_came()


HEADERS: dict[str, Edit] = {
    "start": set_in("header", lambda line: line.update(start_url="http://127.0.0.1:9/")),
    "secrets": set_in("header", lambda line: line["config"].update(secrets=["PIN=env:HOME"])),
    "server": set_in("header", lambda line: line["config"].update(base_url="http://127.0.0.1:9/v1")),
    "task": set_in("header", lambda line: line["task"].update(seed=5)),
    "action": set_in("intent", lambda line: line["action"].update(text="<secret>KEY</secret>")),
}
CHANGES: dict[str, Edit] = {
    **{f"edited {name}": edit for name, edit in HEADERS.items()},
    **{f"edited {name}, chain recomputed": rechained(edit) for name, edit in HEADERS.items()},
    "own header, foreign steps": lambda lines: [lines[0], *rechained(lambda lines: lines)(lines)[1:]],
    "foreign header, own steps": lambda lines: [rechained(lambda lines: lines)(lines)[0], *lines[1:]],
    "no chain": unchained(),
    "of a version before the chain": unchained(version=3),
    "marks in other places": lambda lines: [
        line[:-66] + mark[-66:] for line, mark in zip(lines, [*lines[1:], lines[0]], strict=True)
    ],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_changed_trace_is_foreign_and_sends_nothing(machine: Machine, trace: Path, change: Edit) -> None:
    assert read_recording(trace).own, "the control: unchanged, it is this machine's"
    rewrite(trace, change)
    assert not read_recording(trace).own
    with pytest.raises(ForeignRun):
        await replay_trace(trace, may_act=True)
    with pytest.raises(ForeignRun):
        await branch_trace(trace, "openai:policy-m", 1, may_act=True, out=trace.parent / "out")
    assert machine.nothing_came()


def test_a_copied_or_moved_folder_stays_this_machines(run: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "copy")
    run.path.rename(tmp_path / "moved")
    assert recorded_run(RunFolder(tmp_path / "copy"))[1].own
    assert recorded_run(RunFolder(tmp_path / "moved"))[1].own


def test_a_run_json_that_was_only_laid_out_anew_stays_this_machines(run: RunFolder) -> None:
    values = json.loads(run.manifest.read_text())
    run.manifest.write_text(json.dumps(dict(reversed(values.items())), indent=8))
    assert recorded_run(run)[1].own


def test_without_its_key_this_machine_knows_its_runs_no_more(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    run = write_shared_run(machine, tmp_path / "r")
    assert recorded_run(run)[1].own
    (state / "mira" / "run-key").unlink()
    _kept.cache_clear()
    assert not recorded_run(run)[1].own


def test_a_run_that_cannot_be_marked_is_reported_once_and_is_foreign_to_the_next_process(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder can be made below it")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    run = write_shared_run(machine, tmp_path / "r")
    message = [notice for notice in _notices(machine.config(), False) if "cannot be kept" in notice]
    assert len(message) == 1 and str(tmp_path / "file") in message[0]
    assert recorded_run(run)[1].own, "within the process that wrote it"
    _kept.cache_clear()
    assert not recorded_run(run)[1].own


def test_a_torn_last_line_stays_this_machines(run: RunFolder) -> None:
    with run.trace("task-0-a1").open("ab") as file:
        file.write(b'{"kind":"plan","st')
    assert recorded_run(run)[1].own


def test_the_question_names_the_address_that_is_used(machine: Machine, tmp_path: Path) -> None:
    """The header has the address after redirects; a run starts at the address of its manifest."""
    run = write_shared_run(machine, tmp_path / "r")
    path = write_shared_trace(machine, run.path / "episodes" / "shared.jsonl")
    rewrite(path, rechained(set_in("header", lambda line: line.update(run_id="r", start_url="http://a/")), own=True))
    assert live_address(read_recording(path)) == machine.server.url
    of_run_json(lambda values: values["open_task"].update(url="http://127.0.0.1:9/"))(run)
    assert live_address(read_recording(path)) == "http://a/", "an edited run.json decides nothing"


@pytest.mark.browser
async def test_a_run_that_was_taken_over_is_this_machines_and_its_header_is_not(
    machine: Machine, tmp_path: Path
) -> None:
    with keyed(tmp_path / "abroad"):
        run = write_shared_run(machine, tmp_path / "r")
    state = run.saved("task-0-a1")
    state.mkdir(parents=True)
    (state / "storage.json").write_text('{"cookies": [], "origins": []}')
    (state / "tabs.json").write_text(json.dumps({"urls": [machine.elsewhere.url], "active": 0}))
    granted = machine.values | {"policy": "scripted", "url": machine.server.url, "secrets": [], "langsmith": False}
    granted |= {"planner": "none", "judge": "none", "answer_schema": None}
    done = await resume(run.path, policy=scripted((Stop(answer="{}"),)), granted_settings=granted)
    assert done.complete
    assert machine.server.arrived and not machine.elsewhere.arrived, "the saved tabs are not opened"
    assert (run.path / "state.foreign" / "task-0-a1" / "tabs.json").exists()
    assert recorded_run(run)[1].own and run.read_manifest().config.secrets == ()
    trace = read_trace(run.trace("task-0-a1"))
    assert [event.name for event in trace.events] == ["adopted", "resumed"]
    assert (trace.seal.own_header, trace.seal.own, trace.seal.edited) == (False, True, None)
    with pytest.raises(ForeignRun, match="--secret PIN=env:MIRA_TEST_PIN"):
        await replay_trace(run.trace("task-0-a1"), may_act=True)


@pytest.mark.browser
async def test_a_run_with_plain_settings_resumes_on_any_machine(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with keyed(tmp_path / "abroad"):
        run = write_run(tmp_path / "r", [Play(task="click-test", outcome=None, actions=(), z=((),))])
    monkeypatch.setattr(sys, "argv", ["mira", "resume", str(run.path), "--json"])
    with pytest.raises(SystemExit) as ended:
        await asyncio.to_thread(main)
    assert ended.value.code == 0
    assert "It uses nothing of this machine, and no server" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--url", "http://127.0.0.1:9/"], "leave out --url"),
        (["--allow", "http://127.0.0.1:9"], "leave out --allow"),
        (["--secret", "PIN=env:HOME"], "leave out --secret"),
        (["--without", "secrets"], "leave out --secret"),
        (["--without", "nothing"], "--without 'nothing': known are policy, planner"),
    ],
)
def test_a_run_of_this_machine_is_not_changed_by_options(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    code = mira(monkeypatch, "resume", str(run.path), *words)
    stderr = capsys.readouterr().err
    assert (code, stderr.count("\n")) == (2, 1) and message in stderr


@pytest.mark.parametrize("suite", ["webarena", "webarena-lite", "browsergym:webarena.310", "browsergym:mine:thing"])
async def test_a_suite_that_uses_this_machines_servers_or_code_must_be_named(
    machine: Machine, tmp_path: Path, suite: str
) -> None:
    with keyed(tmp_path / "abroad"):
        run = write_run(tmp_path / "r", [Play(outcome=None)])
        manifest = run.read_manifest()
        run.write_manifest(manifest.model_copy(update={"suite": suite}))
    with pytest.raises(ForeignRun) as refusal:
        await resume(run.path)
    assert [field.name for field in refusal.value.fields] == ["suite"]
    with pytest.raises(BadInput, match="is of the suite"):
        await resume(run.path, granted_settings={"suite": "miniwob"})


def test_a_table_that_is_given_again_replaces_the_stored_table_completely(machine: Machine, tmp_path: Path) -> None:
    """With half of the credentials from the foreign run, its server would receive ours."""
    with keyed(tmp_path / "abroad"):
        run = write_shared_run(machine, tmp_path / "r")
    _, recorded = recorded_run(run)
    half = machine.values["session"] | {"http_credentials": {"value": "env:MIRA_TEST_BASIC"}}
    with pytest.raises(BadInput, match=r"http_credentials\.origin"):
        apply_grants(recorded, machine.values | {"url": machine.server.url, "session": half})
    complete = half | {"http_credentials": {"origin": "https://mine.example", "value": "env:MIRA_TEST_BASIC"}}
    settled = apply_grants(recorded, machine.values | {"url": machine.server.url, "session": complete})
    assert settled.config.session.http_credentials is not None
    assert settled.config.session.http_credentials.origin == "https://mine.example"


def zips(folder: Path) -> list[str]:
    return [str(file.relative_to(folder)) for file in folder.rglob("*.zip")]


@pytest.mark.browser
async def test_a_replay_keeps_its_files_below_the_output_folder(tmp_path: Path) -> None:
    """The ids in a header are untrusted."""
    run = write_run(tmp_path / "r", [Play(task="click-test", actions=(Click(ref=1),), z=((), ()))])
    path = run.trace("click-test-0-a1")
    rewrite(path, rechained(set_in("header", lambda line: line.update(episode_id="../../../out")), own=True))
    await replay_trace(path, ReplayOptions(patience_s=0), trace_zip=True, out=tmp_path / "kept")
    assert zips(tmp_path) == ["kept/traces/click-test-0-a1.zip"]


LINKED = ("lease", "results.jsonl", "run.json", "episodes/task-0-a1.jsonl")


@pytest.mark.parametrize("name", LINKED)
async def test_a_link_in_a_run_folder_is_not_written_through(run: RunFolder, tmp_path: Path, name: str) -> None:
    """Also for an own run, which may have been sent to another machine and back."""
    target, path = tmp_path / "precious", run.path / name
    target.write_bytes(path.read_bytes() if path.exists() else b"precious")
    before = target.read_bytes()
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    with pytest.raises(BadInput, match="is a link or a special file"):
        await resume(run.path)
    assert target.read_bytes() == before


@pytest.mark.parametrize("kind", ["folder", "pipe"])
async def test_neither_linked_folders_nor_pipes_are_followed(run: RunFolder, tmp_path: Path, kind: str) -> None:
    shutil.rmtree(run.downloads)
    if kind == "pipe":
        os.mkfifo(run.downloads)
    else:
        (tmp_path / "elsewhere").mkdir()
        run.downloads.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="is a link or a special file"):
        await resume(run.path)


READING = [
    ["show", "RUN"],
    ["show", "TRACE"],
    ["report", "RUN"],
    ["analyze", "RUN"],
    ["quality", "RUN"],
    ["compare", "RUN", "RUN"],
    ["eval", "RUN"],
    ["train", "examples", "RUN", "-o", "OUT/steps.jsonl", "--allow-evaluation"],
]


@pytest.mark.parametrize("words", READING, ids=[" ".join(words[:2]) for words in READING])
def test_commands_that_only_read_open_a_foreign_run_and_send_no_request(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    with keyed(tmp_path / "abroad"):
        wanting: dict[str, object] = machine.config().resolved()
        plays = [Play(config=wanting), Play(seed=1, outcome="failure", config=wanting)]
        run = write_run(tmp_path / "r", plays)
    places = {"RUN": str(run.path), "TRACE": str(run.trace("login-user-0-a1")), "OUT": str(tmp_path)}
    for name, place in places.items():
        words = [word.replace(name, place) for word in words]
    assert mira(monkeypatch, *words) == 0
    assert machine.nothing_came()


def test_recorded_traces_of_before_the_mark_open_and_are_foreign_to_a_replay() -> None:
    recorded = sorted((Path(__file__).parents[2] / "data" / "failures" / "references" / "episodes").glob("*.jsonl"))
    for path in recorded[:5]:
        seal = read_trace(path).seal
        assert (seal.chained, seal.edited, seal.own) == (False, None, False)
        assert not read_recording(path).own
    assert not check_chain(recorded[0]).own
