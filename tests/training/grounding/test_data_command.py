"""`mira data grounding` refuses bad input in one line, before a browser starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mira_command import mira


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["file.txt"], "is a file: name a folder"),
        (["full"], "is not an empty folder and holds no data set"),
        (
            ["set", "--seed", "2", "--per-page", "3"],
            "a data set with other settings of per_page, seed: restore",
        ),
        (["new", "--sizes", "12x9"], "--sizes: '12x9'"),
        (["new", "--sources", "web"], "--sources 'web'"),
        (["new", "--coordinates", "inches"], "--coordinates 'inches'"),
    ],
    ids=["file", "other files", "other settings", "size", "source", "coordinates"],
)
def test_bad_input(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.txt").touch()
    for folder in ("full", "set"):
        Path(folder).mkdir()
    Path("full/other.txt").touch()
    Path("set/grounding.json").write_text("{}")  # the settings by default
    code = mira(monkeypatch, "data", "grounding", *words)
    said = capsys.readouterr().err
    assert code == 2 and says in said and said.count("\n") == 1
    assert not Path("new").exists()
