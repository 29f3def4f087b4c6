"""`mira train show`: a table that fits 80 columns, and all of it as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agent.cli import output
from tests.mira_command import mira
from training.loop.data import ReplayCounts
from training.loop.loop import Progress
from training.loop.metrics import CriticScores, GroupMetrics, LossChange, PhaseMetrics, PlayedRun
from training.loop.parts import write_record
from training.mira.group_advantages import GroupCounts

START = PhaseMetrics(
    phase=0, evaluation=PlayedRun(episodes=5, successes=5, broken=0, steps=3, progress=None, failures={})
)
LATER = PhaseMetrics(
    phase=6,
    evaluation=PlayedRun(episodes=20, successes=13, broken=0, steps=4.5, progress=0.5, failures={"other": 7}),
    rollouts=PlayedRun(episodes=200, successes=200, broken=0, steps=3, progress=1, failures={}),
    actor_rows=12_345,
    replayed=ReplayCounts(held=500, chosen=400),
    potential=CriticScores(rows=90, absolute_error=0.1234, spearman=None),
    advantage_on_successes=-0.0512,
    actor_loss=LossChange(first=0.1704, last=0.0966),
    perplexity=12.3456,
    unreadable=0.0456,
)
GROUPED = LATER.model_copy(update={"groups": GroupMetrics(counts=GroupCounts(groups=5, informative=2, reward=0.5))})


def show(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    assert mira(monkeypatch, "train", "show", *words) == 0


@pytest.fixture
def out(tmp_path: Path) -> Path:
    write_record(tmp_path / "progress.json", Progress(arm="mira", seed=0, phases=(START, LATER)))
    return tmp_path


def cells_of(lines: list[str]) -> list[list[str]]:
    """The cells of the rows below the table header in *lines*; cells are two spaces apart, empty ones left out."""
    rule = next(place for place, line in enumerate(lines) if line.startswith("──"))
    return [re.split(r"\s{2,}", line.strip()) for line in lines[rule + 1 :]]


@pytest.mark.parametrize("columns", [80, 120])
def test_no_cell_is_truncated_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], out: Path, columns: int
) -> None:
    monkeypatch.setattr(output.stdout, "_width", columns)
    show(monkeypatch, str(out))
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert cells_of(lines) == [
        ["0", "100% (57-100)"],
        ["6", "65% (43-82)", "100%", "400", "12345", "-0.05", "0.12", "0.17→0.10"],
    ]


def test_groups_and_unreadable_answers_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_record(tmp_path / "progress.json", Progress(arm="mgrpo", seed=0, phases=(START, GROUPED)))
    monkeypatch.setattr(output.stdout, "_width", 120)
    show(monkeypatch, str(tmp_path), "--wide")
    lines = capsys.readouterr().out.splitlines()
    assert cells_of(lines)[1] == ["6", "65% (43-82)", "100%", "0.50", "2/5", "4.6%", "12345", "0%"]


def test_seconds_are_shown_by_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    parts = {"rollouts": 3_600.4, "data": 12.0, "potential-pretraining": 5.0, "potential": 20.0, "value-fold-1": 30.0}
    parts |= {"value-fold-2": 31.0, "advantages": 7.0, "actor": 90.0, "evaluation": 1_800.0}
    timed = LATER.model_copy(update={"seconds": parts})
    first = START.model_copy(update={"seconds": {"evaluation": 60.0}})
    write_record(tmp_path / "progress.json", Progress(arm="mira", seed=0, phases=(first, timed)))
    show(monkeypatch, str(tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    below = lines[lines.index("wall seconds by part") :]
    assert cells_of(below) == [
        ["0", "60", "60"],
        ["6", "3600", "12", "25", "61", "7", "90", "1800", "5595"],
    ]


def test_json_has_every_digit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], out: Path) -> None:
    show(monkeypatch, str(out), "--json")
    assert Progress.model_validate(json.loads(capsys.readouterr().out)).phases == (START, LATER)


def test_a_run_whose_start_is_measured_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_record(tmp_path / "progress.json", Progress(arm="mira", seed=0, phases=(START,)))
    show(monkeypatch, str(tmp_path))
    assert "100% (57-100)" in capsys.readouterr().out


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    """Arguments for two runs: one evaluated at its start and end, one at its start."""
    for seed, phases in ((0, (START, LATER)), (1, (START,))):
        write_record(tmp_path / f"seed-{seed}" / "progress.json", Progress(arm="mira", seed=seed, phases=phases))
    return [str(tmp_path / "seed-0"), f"again={tmp_path / 'seed-1'}"]


def test_runs_are_shown_side_by_side_by_phase(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], two: list[str]
) -> None:
    show(monkeypatch, *two)
    lines = capsys.readouterr().out.splitlines()
    assert cells_of(lines) == [["mira", "0", "100% (57-100)", "65% (43-82)"], ["again", "1", "100% (57-100)"]]
    show(monkeypatch, *two, "--json")
    shown = [Progress.model_validate(item) for item in json.loads(capsys.readouterr().out)]
    assert [(item.arm, item.seed, len(item.phases)) for item in shown] == [("mira", 0, 2), ("again", 1, 1)]


@pytest.mark.parametrize(("seeds", "shown"), [((0, 1), ""), ((0, 2), "was measured on other tasks than")])
def test_runs_evaluated_on_other_tasks_are_reported(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    two: list[str],
    seeds: tuple[int, int],
    shown: str,
) -> None:
    """The number of evaluations does not matter."""
    evaluations = ({"seeds": (0, 1), "every": 1}, {"seeds": seeds, "every": 3})
    for word, evaluation in zip(two, evaluations, strict=True):
        folder = Path(word.rpartition("=")[2])
        (folder / "config.json").write_text(json.dumps({"evaluation": evaluation}))
    show(monkeypatch, *two)
    printed = capsys.readouterr()
    assert "again" in printed.out and shown in printed.err and bool(shown) == bool(printed.err)
    show(monkeypatch, two[0])
    assert not capsys.readouterr().err, "a single run has no comparison"


def test_their_curves_are_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], two: list[str], tmp_path: Path
) -> None:
    show(monkeypatch, *two, "--out", str(tmp_path / "c.svg"))
    assert str(tmp_path / "c.svg") in capsys.readouterr().out.replace("\n", "")
    assert "again (1 seed)" in (tmp_path / "c.svg").read_text()
