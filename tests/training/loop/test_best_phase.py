"""`mira train best`: the phase with the highest success on held-out tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judges.statistics import wilson
from models.embedded import embedded_dir
from tests.mira_command import mira
from training.loop.best_phase import best_phase
from training.loop.loop import Progress
from training.loop.metrics import PhaseMetrics, PlayedRun
from training.loop.parts import write_record


def measured(phase: int, successes: int, *, episodes: int = 10, broken: int = 0) -> PhaseMetrics:
    played = PlayedRun(episodes=episodes, successes=successes, broken=broken, steps=3, progress=None, failures={})
    return PhaseMetrics(phase=phase, evaluation=played)


def written(out: Path, *phases: PhaseMetrics, start: str = "embedded") -> Path:
    write_record(out / "progress.json", Progress(arm="mira", seed=0, phases=phases))
    (out / "config.json").write_text(json.dumps({"start": start}))
    return out


def test_the_earliest_of_equal_phases_is_the_best(tmp_path: Path) -> None:
    run = written(tmp_path, measured(0, 4), measured(1, 7), PhaseMetrics(phase=2), measured(3, 7), measured(4, 6))
    model = run / "phase-1" / "actor" / "model"
    model.mkdir(parents=True)
    result = best_phase(run)
    assert (result.phase, result.checkpoint, result.kept) == (1, str(model), True)
    assert (result.successes, result.judged, result.rate, result.start) == (7, 10, 0.7, 0.4)
    assert result.interval == wilson(7, 10) and result.compared == 4


def test_episodes_without_a_verdict_do_not_count(tmp_path: Path) -> None:
    run = written(tmp_path, measured(0, 5), measured(1, 4, broken=4), measured(2, 0, broken=10))
    assert (best_phase(run).phase, best_phase(run).judged, best_phase(run).compared) == (1, 6, 2)


def test_the_start_may_be_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = written(tmp_path, measured(0, 5), measured(1, 5))
    assert mira(monkeypatch, "train", "best", run) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "phase 0 (the start), the best of 2: 5 of 10 held-out episodes solved, 50% (24-76)"
    assert second == str(embedded_dir())


def test_a_removed_checkpoint_is_named_as_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = written(tmp_path, measured(0, 1), measured(1, 6), measured(2, 5))
    assert mira(monkeypatch, "train", "best", run) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "phase 1, the best of 3: 6 of 10 held-out episodes solved, 60% (31-83); the start 10%"
    assert second.startswith(str(run / "phase-1" / "actor" / "model")) and "removed" in second


def test_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run = written(tmp_path, measured(0, 1), measured(1, 6))
    assert mira(monkeypatch, "train", "best", run, "--json") == 0
    values = json.loads(capsys.readouterr().out)
    assert values["phase"] == 1 and values["interval"] == list(wilson(6, 10)) and values["kept"] is False


@pytest.mark.parametrize("what", ["nothing", "no_evaluation", "grpo"])
def test_what_is_no_measured_run_is_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if what == "no_evaluation":
        written(tmp_path, PhaseMetrics(phase=0))
    if what == "grpo":
        (tmp_path / "grpo.json").write_text("{}")
    assert mira(monkeypatch, "train", "best", tmp_path) == 2
    error = capsys.readouterr().err.strip()
    says = {"nothing": "holds no run", "no_evaluation": "no evaluation with a judged episode", "grpo": "no phases"}
    assert says[what] in error and "\n" not in error
