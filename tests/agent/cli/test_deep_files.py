"""A file of another program may nest its values so deeply that Python's parsers give up: one line, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.episodes import Play, write_run
from tests.mira_command import mira

DEEP = "[" * 100_000 + "\n"
SCRIPT = ("run", "--suite", "miniwob", "--tasks", "click-test", "--policy", "scripted:deep.json")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(("show", "deep.jsonl"), "deep.jsonl:1: kind: this is not a trace", id="trace"),
        pytest.param(("eval", "deep.jsonl"), "deep.jsonl:1: kind: this is not a trace", id="eval"),
        pytest.param(("run", "--suite", "miniwob", "--config", "deep.toml"), "it is nested too deeply", id="run"),
        pytest.param(
            ("train", "grpo", "x.jsonl", "-o", "out", "-c", "deep.toml"), "it is nested too deeply", id="grpo"
        ),
        pytest.param(SCRIPT, "script 'deep.json' is not JSON", id="script"),
    ],
)
def test_a_deeply_nested_file_is_one_line(
    words: tuple[str, ...],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Symptom: RecursionError with a traceback."""
    monkeypatch.chdir(tmp_path)
    for name in ("deep.jsonl", "deep.json"):
        Path(name).write_text(DEEP)
    Path("deep.toml").write_text(f"a = {'[' * 5_000}1{']' * 5_000}\n")
    assert mira(monkeypatch, *words) == 2
    captured = capsys.readouterr()
    assert why in captured.err and captured.err.count("\n") == 1


def test_a_deeply_nested_trace_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Symptom: one such file of another machine ended a report on a whole folder."""
    write_run(tmp_path / "r", [Play()])
    (tmp_path / "deep.jsonl").write_text(DEEP)
    assert mira(monkeypatch, "show", tmp_path / "r", tmp_path / "deep.jsonl") == 0
    captured = capsys.readouterr()
    assert "1 success" in captured.out and "deep.jsonl:1: kind: this is not a trace" in captured.err
