"""The hash chain of a trace detects every edit, survives kills and torn lines, and identifies the writing machine."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from envs.core.errors import TraceError
from envs.core.local_key import _kept
from envs.core.trace import SCHEMA_VERSION
from envs.core.trace_store import BlobStore, TraceWriter, check_chain, iter_lines, read_summary, read_trace
from tests.agent.episodes import Play, write_run
from tests.envs.core.edits import EDITS, Edit, rechained, rewrite, set_in, unchained
from tests.envs.core.test_trace_store import FOOTER, HEADER, commit, intent

PLAY = Play(outcome="failure")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Header, plan, two steps, footer."""
    return write_run(tmp_path / "r", [PLAY]).trace(PLAY.job.episode_id)


def test_an_unedited_trace_fits_its_chain(path: Path) -> None:
    seal = read_trace(path).seal
    assert (seal.chained, seal.edited, seal.own_header, seal.own) == (True, None, True, True)
    assert check_chain(path) == seal


@pytest.mark.parametrize(("edit", "line"), EDITS.values(), ids=EDITS)
def test_every_edit_is_seen_at_its_line(path: Path, edit: Edit, line: int) -> None:
    rewrite(path, edit)
    assert check_chain(path).edited == line
    with suppress(TraceError):  # of some the order became impossible as well
        assert read_trace(path).seal.edited == line


@pytest.mark.parametrize("edit", [edit for edit, _ in EDITS.values()], ids=EDITS)
def test_an_edit_with_a_new_chain_is_of_another_machine(path: Path, edit: Edit) -> None:
    rewrite(path, rechained(edit))
    seal = check_chain(path)
    assert (seal.chained, seal.edited, seal.own) == (True, None, False)
    rewrite(path, rechained(lambda lines: lines, own=True))
    assert check_chain(path).own, "the control: with the key the same lines would be this machine's"


def test_marks_of_another_trace_fit_no_line(path: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", [PLAY]).trace(PLAY.job.episode_id)
    marks = [json.loads(line)["mark"] for line in other.read_bytes().splitlines()]

    def edit(lines: list[bytes]) -> list[bytes]:
        made = rechained(lambda lines: lines)(lines)
        return [line[:-1] + f',"mark":"{mark}"}}'.encode() for line, mark in zip(made, marks, strict=True)]

    rewrite(path, edit)
    seal = check_chain(path)
    assert (seal.edited, seal.own_header, seal.own) == (None, False, False)


def test_a_header_of_this_machine_before_lines_of_another_is_not_its_trace(path: Path) -> None:
    rewrite(path, lambda lines: [lines[0], *rechained(lambda lines: lines)(lines)[1:]])
    seal = check_chain(path)
    assert (seal.edited, seal.own_header, seal.own) == (None, True, False)


def test_without_the_key_file_every_trace_is_of_another_machine(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    _kept.cache_clear()
    assert (check_chain(path).edited, check_chain(path).own) == (None, False)


@pytest.mark.parametrize("count", range(1, 7))
def test_lines_cut_off_at_the_end_leave_an_unfinished_trace(path: Path, count: int) -> None:
    rewrite(path, lambda lines: lines[:-count])
    assert (read_trace(path).footer, check_chain(path).edited, check_chain(path).own) == (None, None, True)


def test_a_trace_cut_anywhere_goes_on_with_a_whole_chain(tmp_path: Path) -> None:
    """After SIGKILL the writer drops the torn line and continues."""
    path, blobs = tmp_path / "e.jsonl", BlobStore(tmp_path / "blobs")
    lines = (HEADER, intent(1), commit(1), intent(2), commit(2), FOOTER)
    with TraceWriter(path, blobs) as writer:
        for line in lines:
            writer.append(line)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with TraceWriter(path, blobs) as writer:
            for line in lines[whole[:size].count(b"\n") :]:
                writer.append(line)
        seal = read_trace(path).seal
        assert (seal.edited, seal.own_header, seal.own) == (None, True, True), size


def test_a_writer_does_not_mend_what_was_edited_before_it(path: Path, tmp_path: Path) -> None:
    rewrite(path, lambda lines: set_in("intent", lambda line: line.update(raw="other"))(lines)[:-1])
    assert check_chain(path).edited == 3
    with TraceWriter(path, BlobStore(tmp_path / "r" / "blobs")) as writer:
        writer.append(FOOTER)
    assert check_chain(path).edited == 3


@pytest.mark.parametrize("version", [2, 3])
def test_a_trace_of_a_version_without_chain_is_read_and_can_go_on(path: Path, tmp_path: Path, version: int) -> None:
    rewrite(path, lambda lines: unchained(version=version)(lines)[:-1])
    seal = read_trace(path).seal
    assert (seal.chained, seal.edited, seal.own) == (False, None, False)
    with TraceWriter(path, BlobStore(tmp_path / "r" / "blobs")) as writer:
        writer.append(FOOTER)
    trace = read_trace(path)
    assert (trace.footer, trace.header.schema_version) == (FOOTER, SCHEMA_VERSION)
    assert (trace.seal.chained, trace.seal.edited, trace.seal.own_header, trace.seal.own) == (True, None, False, True)
    rewrite(path, set_in("commit", lambda line: line["result"].update(message="other")))
    assert check_chain(path).edited == 7, "the lines before the chain began are covered by it"


def test_every_reader_passes_over_the_chain(path: Path) -> None:
    assert len(tuple(iter_lines(path))) == 7
    assert read_summary(path) == (read_trace(path).header, read_trace(path).footer)


def test_text_that_looks_like_a_chain_is_text(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    link = ',"chain":"' + "0" * 64 + '"}'
    header = HEADER.model_copy(update={"config": {"chain": "0" * 64}, "instruction": link})
    with TraceWriter(path, BlobStore(tmp_path / "blobs")) as writer:
        writer.append(header)
        writer.append(intent(1, link, link))
    trace = read_trace(path)
    assert (trace.header, trace.steps[0].intent.raw, trace.seal.edited) == (header, link, None)
