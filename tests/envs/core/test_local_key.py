"""The local signing key: private, created once, and never a reason to fail."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from envs.core.local_key import KEY_BYTES, _kept, local_key
from tests.timing import HANG_S


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "mira" / "run-key"


def another_process() -> None:
    """Resets the cache as in a new process."""
    _kept.cache_clear()


def test_a_key_is_made_on_first_use_for_its_owner_alone(state: Path) -> None:
    mark = local_key().mark("run", b"data")
    assert (state.stat().st_mode & 0o777, len(state.read_bytes())) == (0o600, KEY_BYTES)
    assert [path.name for path in state.parent.iterdir()] == ["run-key"]
    another_process()
    assert local_key().fits(mark, "run", b"data")
    assert local_key().problem == ""


@pytest.mark.parametrize(
    ("purpose", "data"), [("run", b"other"), ("trace line", b"data"), ("run\0", b"data"), ("ru", b"n\0data")]
)
def test_a_mark_fits_nothing_else(state: Path, purpose: str, data: bytes) -> None:
    assert not local_key().fits(local_key().mark("run", b"data"), purpose, data)


@pytest.mark.parametrize("mark", ["", "0" * 64, "é", "x"])
def test_what_is_no_mark_does_not_fit(state: Path, mark: str) -> None:
    assert not local_key().fits(mark, "run", b"data")


def test_without_its_key_a_mark_fits_no_more(state: Path) -> None:
    mark = local_key().mark("run", b"data")
    state.unlink()
    another_process()
    assert not local_key().fits(mark, "run", b"data")


def lay_out(state: Path, how: str) -> None:
    state.parent.mkdir(parents=True)
    match how:
        case "open to others":
            state.write_bytes(bytes(KEY_BYTES))
            state.chmod(0o644)
        case "short":
            state.write_bytes(b"short")
            state.chmod(0o600)
        case "link":
            (state.parent / "known").write_bytes(bytes(KEY_BYTES))
            (state.parent / "known").chmod(0o600)
            state.symlink_to("known")
        case "folder":
            state.mkdir()
        case _:
            os.mkfifo(state, 0o600)


@pytest.mark.parametrize("how", ["open to others", "short", "link", "folder", "pipe"])
def test_a_key_that_another_could_know_is_not_used(state: Path, how: str) -> None:
    lay_out(state, how)
    key = local_key()
    assert key.secret != bytes(KEY_BYTES) and len(key.secret) == KEY_BYTES
    assert str(state) in key.problem and "\n" not in key.problem
    assert key.fits(key.mark("run", b"data"), "run", b"data"), "within this process its runs are its own"


def test_a_home_that_cannot_be_written_costs_the_mark_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    key = local_key()
    assert "cannot be kept" in key.problem
    mark = key.mark("run", b"data")
    another_process()
    assert not local_key().fits(mark, "run", b"data")


def test_a_relative_state_folder_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the XDG specification requires."""
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert local_key().path == tmp_path / ".local" / "state" / "mira" / "run-key"


def _mark(marks: multiprocessing.Queue[str]) -> None:
    _kept.cache_clear()
    marks.put(local_key().mark("run", b"data"))


def test_of_many_that_make_the_key_at_once_all_get_the_same(state: Path) -> None:
    context = multiprocessing.get_context("fork")
    marks: multiprocessing.Queue[str] = context.Queue()
    asking = [context.Process(target=_mark, args=(marks,)) for _ in range(8)]
    for process in asking:
        process.start()
    assert len({marks.get(timeout=HANG_S) for _ in asking}) == 1
    for process in asking:
        process.join()
    assert [path.name for path in state.parent.iterdir()] == ["run-key"]
