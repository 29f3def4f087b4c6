"""A number that a library refuses, a run of unreadable traces, a group without a command: one line or help."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.episodes import Play, write_run
from tests.mira_command import mira


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(("quality", "r", "--seed", "-1"), "Invalid value for '--seed'", id="quality"),
        pytest.param(("compare", "r", "r", "--seed", "-1"), "Invalid value for '--seed'", id="compare"),
        pytest.param(("train", "plan", "tiny", "--gpu-memory", "inf"), "Invalid value for '--gpu-memory'", id="plan"),
        pytest.param(
            ("run", "--suite", "miniwob", "--rationale", "²"), "--rationale '²' is not a number", id="superscript"
        ),
        pytest.param(
            ("run", "--suite", "miniwob", "--rationale", "9" * 5_000), "is not a number of characters", id="long"
        ),
        pytest.param(("compare", "damaged.jsonl", "r"), "no trace of 'damaged.jsonl' could be read: ", id="damaged A"),
        pytest.param(("compare", "r", "damaged.jsonl"), "no trace of 'damaged.jsonl' could be read: ", id="damaged B"),
    ],
)
def test_a_wrong_value_is_one_line(
    words: tuple[str, ...],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Symptom: ValueError or OverflowError with a traceback; a comparison with nothing, and exit code 0."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "r", [Play()])
    Path("damaged.jsonl").write_text('{"a": 1}\n')
    assert mira(monkeypatch, *words) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and why in captured.err and captured.err.count("\n") == 1


@pytest.mark.parametrize("group", ["train", "data", "sites"])
def test_a_group_without_a_command_shows_its_help(
    group: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Symptom: help, then `mira: (see mira --help)` and exit code 2; `mira sites` showed no help at all."""
    assert mira(monkeypatch, group) == 0
    captured = capsys.readouterr()
    assert f"Usage: mira {group}" in captured.out and captured.err == ""
