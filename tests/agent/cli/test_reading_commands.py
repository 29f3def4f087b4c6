"""`mira show`, `report`, `quality` and `compare`: their output, and their handling of damaged traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent.episodes import Play, write_run
from tests.mira_command import mira


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A success, a failure, and an episode that was killed while writing a line."""
    plays = [Play(seed=0), Play(seed=1, outcome="failure"), Play(seed=2, outcome=None)]
    folder = write_run(tmp_path / "r", plays)
    with folder.trace("login-user-2-a1").open("a") as file:
        file.write('{"kind":"intent","st')
    return folder.path


def as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str | Path) -> Any:
    assert mira(monkeypatch, *words, "--json") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


@pytest.mark.parametrize("command", ["show", "report", "quality"])
def test_a_folder_without_traces_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    assert mira(monkeypatch, command, tmp_path) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and "holds no traces" in captured.err
    assert list(tmp_path.iterdir()) == []


def test_show_marks_a_torn_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    rows = as_json(monkeypatch, capsys, "show", run)
    assert [(row["outcome"], row["steps"], row["torn"]) for row in rows] == [
        ("success", 2, False),
        ("failure", 2, False),
        ("unfinished", 2, True),
    ]
    assert mira(monkeypatch, "show", run) == 0
    captured = capsys.readouterr()
    assert "1 success, 1 failure, 1 unfinished" in captured.out and "torn" in captured.err


def test_show_reports_the_torn_line_of_a_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    assert mira(monkeypatch, "show", run / "episodes" / "login-user-2-a1.jsonl") == 0
    assert "the last line is torn" in capsys.readouterr().out


def test_show_lists_several_runs_and_names_a_damaged_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    other = write_run(tmp_path / "s", [Play()])
    other.trace("login-user-0-a1").write_text("nonsense\n")
    rows = as_json(monkeypatch, capsys, "show", run, other.path)
    assert [row["run"] for row in rows] == ["r", "r", "r", "s"]
    assert rows[-1]["outcome"] == "damaged" and "login-user-0-a1.jsonl:1" in rows[-1]["problem"]


@pytest.mark.parametrize("command", ["report", "quality"])
def test_only_unreadable_traces_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    folder = write_run(tmp_path / "r", [Play(seed=0)])
    folder.trace("login-user-0-a1").write_text("no trace\n")
    before = sorted(folder.path.iterdir())
    assert mira(monkeypatch, command, folder.path) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and "login-user-0-a1.jsonl" in captured.err
    assert sorted(folder.path.iterdir()) == before, "no empty report is written"


def test_analyze_and_show_agree_on_damaged_traces(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = write_run(tmp_path / "r", [Play(seed=0), Play(seed=1), Play(seed=2, outcome=None)])
    with folder.trace("login-user-1-a1").open("a") as file:
        file.write('{"kind":"x"}\n')
    assert [row["outcome"] for row in as_json_of(monkeypatch, capsys, "show", folder.path)] == [
        "success",
        "damaged",
        "unfinished",
    ]
    result = as_json_of(monkeypatch, capsys, "analyze", folder.path)
    assert result["episodes"] == {"success": 1, "unfinished": 1, "damaged": 1}
    assert "login-user-1-a1.jsonl" in result["problems"][0]["problem"]
    assert mira(monkeypatch, "analyze", folder.path) == 0
    assert "3 episodes: 1 success, 1 unfinished, 1 damaged" in capsys.readouterr().out


def as_json_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, folder: Path) -> Any:
    """The JSON of a command that may name skipped traces on stderr."""
    assert mira(monkeypatch, command, folder, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_a_long_list_cannot_control_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plays = [Play(seed=seed, text="\x1b[2Jgone", actions=(), z=((True,),)) for seed in range(101)]
    run = write_run(tmp_path / "r", plays)
    assert mira(monkeypatch, "show", run.path) == 0
    out = capsys.readouterr().out
    assert out.count("gone") == 101 and "\x1b[2J" not in out


def test_report_prints_what_it_wrote(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    result = as_json(monkeypatch, capsys, "report", run, "--out", tmp_path / "page.html", "--screenshots", "none")
    assert result["episodes"] == 3 and result["bytes"] == (tmp_path / "page.html").stat().st_size
    assert result["problems"] == []


def test_report_refuses_an_unknown_choice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    assert mira(monkeypatch, "report", run, "--screenshots", "some") == 2
    assert "'some'" in capsys.readouterr().err and not (run / "report.html").exists()


def test_quality_prints_the_values_of_the_paper(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    assert mira(monkeypatch, "quality", run) == 0
    out = capsys.readouterr().out
    assert "0.7917" in out and "0.4585" in out and "left out: 1 × unfinished" in out
    result = as_json(monkeypatch, capsys, "quality", run)
    assert result["paper"]["recall"] == 0.6032 and result["sources"][0]["traces"] == 2


def test_quality_without_data_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = write_run(tmp_path / "r", [Play(outcome="broken")])
    assert mira(monkeypatch, "quality", run.path) == 0
    assert "nothing to measure" in capsys.readouterr().out


def test_compare_prints_the_test_and_its_limits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    other = write_run(tmp_path / "s", [Play(seed=seed, policy="oracle") for seed in (0, 1, 7)])
    assert mira(monkeypatch, "compare", run, other.path) == 0
    out = capsys.readouterr().out
    assert "McNemar, exact" in out and "B better on 1 tasks" in out
    assert "judged only in B, not tested: miniwob/login-user/7" in out
    assert "excluded from rates of A: 1 unfinished" in out
    result = as_json(monkeypatch, capsys, "compare", run, other.path)
    assert result["paired"]["tasks"] == 2 and result["spent"]["steps"]["change"]["value"] == 0.0


def test_quality_labels_instances_with_their_common_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Symptom: the row of three seeds had the text of the first seed."""
    names = ("ann", "bob", "cy")
    plays = [
        Play(seed=seed, text=f'Username "{name}" is filled in', actions=(), z=((True, True),))
        for seed, name in enumerate(names)
    ]
    run = write_run(tmp_path / "r", [*plays, Play(seed=3, outcome="failure", text='Username "di" is filled in')])
    result = as_json_of(monkeypatch, capsys, "quality", run.path)
    rows = result["sources"][0]["milestones"]
    assert [(row["text"], row["traces"]) for row in rows] == [
        ('Username "…" is filled in 1', 4),
        ('Username "…" is filled in 2', 4),
    ]
    assert mira(monkeypatch, "quality", run.path) == 0
    out = capsys.readouterr().out
    assert 'Username "…" is filled in 1' in out and not [name for name in (*names, "di") if f'"{name}"' in out]
