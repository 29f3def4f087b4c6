"""Traces on disk: durability, rejected files, and page text that is neither lost nor leaked."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.core import actions as act
from envs.core.errors import TraceError
from envs.core.record import storable, unmasked_fields
from envs.core.tasks import TaskRef
from envs.core.trace import (
    SCHEMA_VERSION,
    Call,
    Commit,
    ElementKeyRecord,
    Event,
    Footer,
    Header,
    Intent,
    Line,
    ObservationRecord,
    Rating,
    Timings,
    Totals,
)
from envs.core.trace_store import (
    BlobStore,
    RunLock,
    RunLocked,
    TraceWriter,
    has_header,
    iter_lines,
    now,
    read_summary,
    read_trace,
)
from envs.security.allowlist import Origins
from envs.security.secrets import SecretVault
from tests.timing import HANG_S

HEADER = Header(
    run_id="r",
    episode_id="e",
    task=TaskRef(suite="open", name="t"),
    instruction="Buy socks",
    category="shop",
    config={"max_steps": 3},
    versions={"mira": "0"},
    started_at="2026-01-01T00:00:00+00:00",
)
SEEN = ObservationRecord(
    url="http://a/", title="A", digest="0", text_blob="0" * 64, keys_blob="0" * 64, controls_total=1
)
FOOTER = Footer(outcome="success", ended_by="stop", judged_by="checker", totals=Totals(steps=1), at="t")
BROKEN = FOOTER.model_copy(
    update={"outcome": "broken", "ended_by": "error", "judged_by": "none", "resumable": True, "error": "ModelBusy: x"}
)


def intent(step: int, raw: str = "", text: str = "") -> Intent:
    action = act.Type(ref=1, text=text)
    return Intent(step=step, seen=SEEN, rating=Rating(z=()), action=action, raw=raw, at="t")


def commit(step: int) -> Commit:
    result = act.ActionResult(status=act.Status.OK)
    return Commit(step=step, result=result, timings=Timings(), at="t")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "episodes" / "e.jsonl"


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def _all_lines(path: Path) -> list[Line]:
    return list(iter_lines(path))


def write(path: Path, blobs: BlobStore, *records: Line) -> None:
    with TraceWriter(path, blobs) as writer:
        for record in records:
            writer.append(record)


def test_what_is_written_is_read_back(path: Path, blobs: BlobStore) -> None:
    event = Event(step=1, name="approval", at="t")
    write(path, blobs, HEADER, intent(1, "click"), commit(1), event, intent(2), FOOTER)
    trace = read_trace(path)
    assert trace.header == HEADER
    assert trace.steps == ((intent(1, "click"), commit(1)), (intent(2), None))
    assert trace.events == (event,)
    assert trace.footer == FOOTER
    assert not trace.torn
    assert list(iter_lines(path)) == [HEADER, intent(1, "click"), commit(1), event, intent(2), FOOTER]
    assert read_summary(path) == (HEADER, FOOTER)


@given(raw=st.text(), text=st.text())
def test_anything_that_can_be_said_can_be_stored(tmp_path_factory: pytest.TempPathFactory, raw: str, text: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    step = intent(1, raw + "\ud800", text)
    write(folder / "e.jsonl", BlobStore(folder / "blobs"), HEADER, step)
    (read, _), *_ = read_trace(folder / "e.jsonl").steps
    assert read.raw == storable(step.raw)
    assert read.action == act.Type(ref=1, text=storable(text))


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_last_line_is_tolerated_then_repaired(path: Path, blobs: BlobStore, cut: int) -> None:
    write(path, blobs, HEADER, intent(1))
    whole = path.read_bytes()
    write(path, blobs, commit(1))
    path.write_bytes(path.read_bytes()[: len(whole) + cut])
    trace = read_trace(path)
    assert trace.torn
    assert trace.steps == ((intent(1), None),)
    write(path, blobs, commit(1), FOOTER)
    trace = read_trace(path)
    assert not trace.torn
    assert trace.steps == ((intent(1), commit(1)),)
    assert [e.name for e in trace.events] == ["torn_line"]
    assert str(cut) in trace.events[0].detail


def test_a_trace_cut_anywhere_goes_on_from_what_its_readers_saw(path: Path, blobs: BlobStore) -> None:
    """A line without its line break is also dropped: readers ignored it, so it must not reappear."""
    lines: tuple[Line, ...] = (HEADER, intent(1), commit(1), intent(2), commit(2), FOOTER)
    write(path, blobs, *lines)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        seen = whole[:size].count(b"\n")
        assert has_header(path) == (seen > 0)
        if seen:
            assert len(tuple(iter_lines(path))) == seen
        write(path, blobs, *lines[seen:])
        trace = read_trace(path)
        assert (trace.header, trace.steps, trace.footer) == (
            HEADER,
            ((intent(1), commit(1)), (intent(2), commit(2))),
            FOOTER,
        )


def test_a_torn_header_leaves_an_empty_file(path: Path, blobs: BlobStore) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"kind":"hea')
    with pytest.raises(TraceError, match=r"e.jsonl:1: kind: "):
        read_summary(path)
    write(path, blobs, HEADER)
    assert read_trace(path).header == HEADER


def test_killed_while_writing_every_line_that_was_appended_is_there(path: Path) -> None:
    code = """
import sys
from pathlib import Path
from tests.envs.core.test_trace_store import *
path = Path(sys.argv[1])
writer = TraceWriter(path, BlobStore(path.parent))
writer.append(HEADER)
for step in range(1, 10**9):
    writer.append(intent(step, "x" * 5000)); writer.append(commit(step))
    print(step, flush=True)
"""
    command, root = [sys.executable, "-c", code, str(path)], Path(__file__).parents[3]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
    assert process.stdout is not None
    for _ in range(20):
        process.stdout.readline()
    process.kill()
    printed = process.stdout.read().split()
    process.wait()
    last = int(printed[-1]) if printed else 20
    steps = read_trace(path).steps
    assert [s.intent.step for s in steps] == list(range(1, len(steps) + 1))
    assert len(steps) >= last
    assert all(s.commit is not None for s in steps[:last])


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ([], "1: kind: the trace is empty"),
        ([intent(1)], "1: kind: this is not a trace"),
        ([HEADER, HEADER], "2: kind: a second header"),
        ([HEADER, commit(1)], "2: step: commit of step 1 without its intent"),
        ([HEADER, intent(1), commit(2)], "3: step: commit of step 2 without its intent"),
        ([HEADER, intent(1), commit(1), commit(1)], "4: step: step 1 is committed twice"),
        ([HEADER, intent(1), commit(1), intent(1)], "4: step: step 1 where 2 or more"),
        ([HEADER, intent(3), intent(2)], "3: step: step 2 where 3 or more"),
        ([HEADER, FOOTER, intent(1)], "3: kind: intent after the footer"),
        ([HEADER, FOOTER, Event(step=0, name="resumed", at="t")], "3: kind: event after the footer"),
        ([HEADER, BROKEN, intent(1)], "3: kind: intent after the footer"),
        ([HEADER, BROKEN, FOOTER], "3: kind: footer after the footer"),
    ],
)
def test_impossible_orders_are_refused(path: Path, blobs: BlobStore, lines: list[Header], fault: str) -> None:
    write(path, blobs, *lines)
    with pytest.raises(TraceError) as error:
        read_trace(path)
    assert f"{path}:{fault}" in str(error.value)


RESUMED = Event(step=1, name="resumed", at="t")


@pytest.mark.parametrize(
    ("lines", "footer"),
    [
        pytest.param([BROKEN], BROKEN, id="broken"),
        pytest.param([BROKEN, RESUMED], None, id="under way again"),
        pytest.param([BROKEN, RESUMED, intent(2), commit(2)], None, id="killed again"),
        pytest.param([BROKEN, RESUMED, intent(2), commit(2), FOOTER], FOOTER, id="ended"),
        pytest.param([BROKEN, RESUMED, BROKEN, RESUMED, FOOTER], FOOTER, id="broken twice"),
    ],
)
def test_a_footer_counts_only_as_the_last_line(
    path: Path, blobs: BlobStore, lines: list[Line], footer: Footer | None
) -> None:
    """A model failure wrote the first footer, and the episode was resumed."""
    write(path, blobs, HEADER, intent(1), commit(1), *lines)
    assert read_trace(path).footer == read_summary(path).footer == footer
    assert [step.intent.step for step in read_trace(path).steps] == ([1, 2] if intent(2) in lines else [1])


def test_a_resumable_footer_that_was_torn_is_dropped_and_the_episode_goes_on(path: Path, blobs: BlobStore) -> None:
    write(path, blobs, HEADER, intent(1), commit(1), BROKEN)
    with path.open("ab") as file:
        file.write(b'{"kind":"event","step":1,"na')  # killed while it wrote an event
    write(path, blobs, RESUMED, intent(2), commit(2), FOOTER)
    trace = read_trace(path)
    assert ([event.name for event in trace.events], trace.footer) == (["torn_line", "resumed"], FOOTER)


def test_a_trace_of_the_version_before_is_read(path: Path, blobs: BlobStore) -> None:
    footer = FOOTER.model_dump(mode="json")
    del footer["resumable"]
    path.parent.mkdir(parents=True)
    path.write_text(damaged(schema_version=2) + json.dumps(footer, separators=(",", ":")) + "\n")
    assert (read_trace(path).footer, read_summary(path).footer) == (FOOTER, FOOTER)


def test_an_end_by_the_environment_before_version_5_is_read(path: Path) -> None:
    ended = FOOTER.model_copy(update={"ended_by": "environment"})
    footer = ended.model_dump(mode="json") | {"ended_by": "world"}
    path.parent.mkdir(parents=True)
    path.write_text(damaged(schema_version=3) + json.dumps(footer, separators=(",", ":")) + "\n")
    assert (read_trace(path).footer, read_summary(path).footer) == (ended, ended)


def test_a_step_left_open_by_a_kill_may_be_intended_again(path: Path, blobs: BlobStore) -> None:
    write(path, blobs, HEADER, intent(1), intent(1), commit(1))
    assert [(s.intent.step, s.commit) for s in read_trace(path).steps] == [(1, None), (1, commit(1))]


def damaged(**changes: object) -> str:
    return json.dumps(json.loads(HEADER.model_dump_json()) | changes) + "\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            damaged(schema_version=99),
            f"1: schema_version: this trace has version 99, this Mira reads up to {SCHEMA_VERSION}",
        ),
        (damaged(schema_version="x"), "1: schema_version: this trace has version 'x'"),
        (damaged(schema_version=0), "1: schema_version: version 0 is too old"),
        (damaged(attempt="many"), "1: header.attempt: "),
        (damaged(attemt=1), "1: header.attemt: "),
        ("no json\n", "1: kind: this is not a trace"),
        ("[1]\n", "1: kind: this is not a trace"),
        (damaged() + "{}\n", "2: line: "),
        (damaged() + '{"kind":"commit"}\n', "2: commit.step: "),
        (damaged() + "\n" + FOOTER.model_dump_json() + "\n", "2: line: "),
    ],
)
def test_damage_is_named_by_file_line_and_field(path: Path, text: str, fault: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(TraceError) as error:
        read_trace(path)
    assert str(error.value).startswith(f"{path}:{fault}")
    assert "\n" not in str(error.value)


def test_a_missing_file_is_a_trace_error(path: Path) -> None:
    for read in (read_trace, read_summary, _all_lines):
        with pytest.raises(TraceError, match="cannot read"):
            read(path)


def test_an_unfinished_trace_has_no_footer(path: Path, blobs: BlobStore) -> None:
    write(path, blobs, HEADER)
    assert read_summary(path) == (HEADER, None)
    write(path, blobs, intent(1, "long " * 40_000))
    assert read_summary(path) == (HEADER, None)
    write(path, blobs, FOOTER)
    assert read_summary(path) == (HEADER, FOOTER)
    with path.open("ab") as file:
        file.write(b'{"kind":')
    assert read_summary(path) == (HEADER, None)


def test_a_long_footer_is_read_whole(path: Path, blobs: BlobStore) -> None:
    footer = FOOTER.model_copy(update={"answer": "ä" * 200_000})
    write(path, blobs, HEADER, intent(1), footer)
    assert read_summary(path).footer == footer


VAULT = SecretVault({"PW": ('hunter2\nis "long"', Origins()), "OUTCOME": ("success", Origins())})


def test_secrets_never_reach_the_disk_and_the_trace_stays_readable(path: Path, tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs", VAULT)
    text = 'I type hunter2\nis "long" now'
    header = HEADER.model_copy(update={"config": {'hunter2\nis "long"': [text], "n": 4}, "instruction": text})
    with TraceWriter(path, blobs, VAULT) as writer:
        for record in (header, intent(1, text, text), FOOTER):
            writer.append(record)
    name = blobs.put_text(text)
    keys = blobs.put_json([{"ref": 1, "name": text}])
    everything = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"hunter2" not in everything
    trace = read_trace(path)
    assert trace.footer is not None
    assert trace.footer.outcome == "success"
    assert trace.steps[0].intent.raw == "I type <secret>PW</secret> now"
    assert blobs.text(name) == "I type <secret>PW</secret> now"
    assert json.loads(blobs.text(keys)) == [{"ref": 1, "name": "I type <secret>PW</secret> now"}]


def test_a_short_secret_does_not_damage_what_mira_writes_itself(path: Path, tmp_path: Path) -> None:
    """Symptom: a PIN occurred in the name of a blob, which could not be read any more, or in every time."""
    page = BlobStore(tmp_path / "blobs").put_text("page")
    pin, year = page[20:24], now()[:4]
    vault = SecretVault({"PIN": (pin, Origins()), "YEAR": (year, Origins()), "EVENT": ("resumed", Origins())})
    blobs = BlobStore(tmp_path / "blobs", vault)
    key = ElementKeyRecord(ref=1, frame="0", role="link", name=f"Enter {pin}", ordinal=0, digest=page[18:26])
    keys = blobs.put_json([key.model_dump()], unmasked_fields(ElementKeyRecord))
    seen = SEEN.model_copy(
        update={"digest": page[16:32], "state": page[16:32], "text_blob": page, "screenshot_blob": page, "note": year}
    )
    file = act.Download(name="a", path="downloads/a", sha256=page, bytes=4)
    ended = commit(1).model_copy(update={"result": act.ActionResult(status=act.Status.OK, downloads=(file,))})
    header = HEADER.model_copy(update={"run_id": f"{year}0101-1", "started_at": now(), "versions": {"mira": year}})
    call = Call(role="policy", model="m", prompt_blob=page)
    step = intent(1, f"the PIN {pin} of {year}").model_copy(update={"seen": seen, "target": key, "calls": (call,)})
    event = Event(step=1, name="resumed", detail=f"in {year}", at=now())
    with TraceWriter(path, blobs, vault) as writer:
        for record in (header, step, ended, event, FOOTER):
            writer.append(record)
    trace = read_trace(path)
    read = trace.steps[0].intent
    masked = key.model_copy(update={"name": "Enter <secret>PIN</secret>"})
    assert (trace.header, trace.steps[0].commit, trace.events[0].name) == (header, ended, "resumed")
    assert read.raw == "the PIN <secret>PIN</secret> of <secret>YEAR</secret>"
    assert read.seen == seen.model_copy(update={"note": "<secret>YEAR</secret>"})
    assert (read.target, read.calls, blobs.text(page)) == (masked, (call,), "page")
    assert trace.events[0] == event.model_copy(update={"detail": "in <secret>YEAR</secret>"})
    assert json.loads(blobs.text(keys)) == [masked.model_dump()]


def test_without_the_vault_the_same_words_would_be_on_disk(path: Path, blobs: BlobStore) -> None:
    write(path, blobs, HEADER, intent(1, "hunter2"))
    assert b"hunter2" in path.read_bytes()


def test_a_blob_seen_twice_is_stored_once(blobs: BlobStore) -> None:
    assert blobs.put_text("page") == blobs.put(b"page") == BlobStore(blobs.folder).put(b"page")
    assert [f.read_bytes() for f in blobs.folder.iterdir()] == [b"page"]
    assert blobs.text(blobs.put_text("lone \ud800 surrogate")) == "lone \ufffd surrogate"


def test_blobs_that_cannot_be_trusted_are_refused(blobs: BlobStore) -> None:
    name = blobs.put(b"\xff\xfe")
    with pytest.raises(TraceError, match="is not text"):
        blobs.text(name)
    (blobs.folder / name).write_bytes(b"other")
    with pytest.raises(TraceError, match="damaged"):
        blobs.read(name)
    with pytest.raises(TraceError, match="missing"):
        blobs.read("0" * 64)
    with pytest.raises(TraceError, match="not a blob name"):
        blobs.read("../../etc/passwd")


def test_fsync_mode_writes_the_same(path: Path, tmp_path: Path) -> None:
    with TraceWriter(path, BlobStore(tmp_path / "b", fsync=True), fsync=True) as writer:
        writer.append(HEADER)
        assert writer.blobs.text(writer.blobs.put_text("x")) == "x"
    assert read_trace(path).header == HEADER
    with pytest.raises(TraceError, match="closed"):
        writer.append(FOOTER)


def test_a_run_has_one_owner(tmp_path: Path) -> None:
    with RunLock(tmp_path) as lease:
        with pytest.raises(RunLocked, match=f"process {os.getpid()} on "):
            RunLock(tmp_path).acquire()
        assert lease.acquire() is lease
    with RunLock(tmp_path):
        pass


HOLD = """
import os, signal, sys
from pathlib import Path
from envs.core.run_lock import RunLock
lease = RunLock(Path(sys.argv[1])).acquire()
if sys.argv[2] == "fork" and os.fork() == 0:
    print(os.getpid(), flush=True)
    signal.pause()
if sys.argv[2] != "fork":
    print(os.getpid(), flush=True)
signal.pause()
"""


@pytest.mark.parametrize("how", ["alone", "fork"])
def test_a_killed_owner_frees_the_run_even_if_its_child_lives(tmp_path: Path, how: str) -> None:
    command, root = [sys.executable, "-c", HOLD, str(tmp_path), how], Path(__file__).parents[3]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    try:
        with pytest.raises(RunLocked, match=f"process {owner.pid} on "):
            RunLock(tmp_path).acquire()
        owner.kill()
        owner.wait()
        RunLock(tmp_path).acquire().release()
    finally:
        if how == "fork":
            os.kill(pid, signal.SIGKILL)
        owner.stdout.close()


def _try(folder: Path, won: multiprocessing.Queue[int]) -> None:
    try:
        RunLock(folder).acquire()
    except RunLocked:
        won.put(0)
    else:
        won.put(1)
        signal.pause()


def test_of_many_who_ask_at_once_one_wins(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    won: multiprocessing.Queue[int] = context.Queue()
    asking = [context.Process(target=_try, args=(tmp_path, won)) for _ in range(6)]
    for process in asking:
        process.start()
    assert sum(won.get(timeout=HANG_S) for _ in asking) == 1
    for process in asking:
        process.kill()
        process.join()
