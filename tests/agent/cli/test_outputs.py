"""A wrong `--out` ends a command before its work, in one line that names the option."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.mira_command import mira

FILES = [
    pytest.param(("train", "puzzles", "maze", "--count", "2"), id="puzzles"),
    pytest.param(("sites", "verify", "--tasks", "shop-add-to-basket"), id="sites verify"),
    pytest.param(("data", "import", "folder", "pictures"), id="data import"),
    pytest.param(("train", "examples", "nothing"), id="examples"),
    pytest.param(("report", "nothing"), id="report"),
]
FOLDERS = [
    pytest.param(("run", "--suite", "miniwob", "--tasks", "click-test"), id="run"),
    pytest.param(("import", "agentlab", "nothing"), id="import"),
    pytest.param(("eval", "grids", "nothing", "--policy", "embedded"), id="eval grids"),
    pytest.param(("train", "mira"), id="train mira"),
    pytest.param(("train", "grpo", "nothing"), id="train grpo"),
]


def problem(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert mira(monkeypatch, *words) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", FILES)
def test_a_folder_or_a_pipe_is_no_output_file(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Symptom: IsADirectoryError after the work; and a file replaced the pipe."""
    assert "--out 'folder' is a folder: name a file" in problem(monkeypatch, capsys, *words, "-o", "folder")
    os.mkfifo("pipe")
    assert "--out 'pipe' is a device or a pipe" in problem(monkeypatch, capsys, *words, "-o", "pipe")
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize("words", FOLDERS)
def test_a_file_is_no_output_folder(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--out 'file' is a file: name a folder" in problem(monkeypatch, capsys, *words, "-o", "file")
    assert Path("file").read_text() == "kept"


@pytest.mark.parametrize("words", FILES + FOLDERS)
def test_nothing_is_written_below_a_file(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Symptom: a traceback of NotADirectoryError or FileExistsError after the work."""
    line = problem(monkeypatch, capsys, *words, "-o", "file/a/b")
    assert "--out 'file/a/b' cannot be written: " in line and "file' is a file, not a folder" in line


def test_a_place_that_the_system_refuses_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not even root can create a file in /proc, which looks writable."""
    line = problem(monkeypatch, capsys, "train", "puzzles", "maze", "--count", "2", "-o", "/proc/puzzles.jsonl")
    assert line.startswith("mira: /proc/puzzles.jsonl") and "No such file or directory" in line
