"""Phases in TensorBoard, read back from its event files."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from envs.core.errors import BadInput
from tests.training.loop.test_show import LATER, START
from training.engine.trackers import check_trackers
from training.loop.loop import Loop
from training.loop.metrics import PlayedRun
from training.loop.parts import read_record
from training.loop.settings import load_settings
from training.loop.tracking import REPORTED, Reported, phase_tracker, scalars

EXPECTED = {
    "evaluation/success_rate": [(0, 1.0), (6, 0.65)],
    "evaluation/steps": [(0, 3.0), (6, 4.5)],
    "evaluation/progress": [(6, 0.5)],
    "evaluation/broken": [(0, 0.0), (6, 0.0)],
    "rollouts/success_rate": [(6, 1.0)],
    "rollouts/steps": [(6, 3.0)],
    "rollouts/progress": [(6, 1.0)],
    "rollouts/broken": [(6, 0.0)],
    "rollouts/unreadable": [(6, 0.0456)],
    "potential/absolute_error": [(6, 0.1234)],
    "advantage/on_successes": [(6, -0.0512)],
    "replay/held": [(6, 500.0)],
    "replay/chosen": [(6, 400.0)],
    **{f"replay/{name}": [(6, 0.0)] for name in ("below_band", "above_band", "over_limit", "too_long")},
    "actor/rows": [(6, 12_345.0)],
    "actor/perplexity": [(6, 12.3456)],
}


def read(out: Path) -> dict[str, list[tuple[int, Any]]]:
    events = EventAccumulator(str(out / "tensorboard"))
    events.Reload()
    tags: dict[str, Any] = events.Tags()
    names: list[str] = tags["scalars"]
    return {name: [(item.step, pytest.approx(item.value, rel=1e-6)) for item in events.Scalars(name)] for name in names}


def test_scalars_are_written_at_the_phase_number(tmp_path: Path) -> None:
    with phase_tracker(tmp_path, ("tensorboard",)) as write:
        write(START)
        write(LATER)
        assert read(tmp_path) == EXPECTED, "also while the loop runs"
    assert read(tmp_path) == EXPECTED


def test_a_resumed_loop_writes_each_phase_once(tmp_path: Path) -> None:
    for phases in ((START,), (START, LATER), (START, LATER)):
        with phase_tracker(tmp_path, ("tensorboard",)) as write:
            for item in phases:
                write(item)
    assert len(list((tmp_path / "tensorboard").iterdir())) == 3
    assert read(tmp_path) == EXPECTED


@pytest.mark.parametrize("report_to", [(), ("codecarbon",)])
def test_without_a_writer_of_phases_no_folder_is_created(tmp_path: Path, report_to: tuple[str, ...]) -> None:
    with phase_tracker(tmp_path, report_to) as write:
        write(LATER)
    assert not list(tmp_path.iterdir())


def test_a_resumed_loop_writes_each_phase_once_to_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    for name, value in (("WANDB_MODE", "offline"), ("WANDB_SILENT", "true")):
        monkeypatch.setenv(name, value)
    check_trackers(("wandb",))
    for phases in ((START,), (START, LATER), (START, LATER)):
        with phase_tracker(tmp_path, ("wandb",)) as write:
            for item in phases:
                write(item)
    kept = read_record(tmp_path / REPORTED, Reported)
    (run,) = kept.runs.values()
    assert kept.phases == {"wandb": LATER.phase}
    stored = [path.read_bytes() for path in tmp_path.glob(f"wandb/offline-run-*-{run}/*.wandb")]
    assert sum(b"evaluation/success_rate" in content for content in stored) == 2


def test_a_resumed_loop_writes_each_phase_once_to_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "arms")
    check_trackers(("mlflow",))
    for phases in ((START,), (START, LATER), (START, LATER)):
        with phase_tracker(tmp_path, ("mlflow",)) as write:
            for item in phases:
                write(item)
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("arms").experiment_id])
    history = client.get_metric_history(run.info.run_id, "evaluation/success_rate")
    assert [(item.step, item.value) for item in history] == EXPECTED["evaluation/success_rate"]


@pytest.mark.skipif(find_spec("wandb") is not None, reason="wandb is installed")
def test_a_library_that_is_not_installed_is_one_line() -> None:
    with pytest.raises(BadInput, match=r"report_to: wandb cannot be used: .*requires wandb to be installed") as error:
        check_trackers(("tensorboard", "wandb"))
    assert "\n" not in str(error.value)


def test_an_unknown_tracker_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    """It used to fail in the first stage, after the rollouts, with a traceback."""
    with pytest.raises(BadInput, match=r"report_to: unknown tracker 'foo'; there are .*tensorboard") as error:
        Loop.open(tmp_path / "out", load_settings(None, ["report_to=['foo']"]))
    assert "\n" not in str(error.value) and not (tmp_path / "out").exists()
    check_trackers(("none",))


def test_all_broken_episodes_give_no_rate() -> None:
    lost = PlayedRun(episodes=3, successes=0, broken=3, steps=0, progress=None, failures={})
    values = scalars(LATER.model_copy(update={"evaluation": lost}))
    assert "evaluation/success_rate" not in values and values["evaluation/broken"] == 3


def test_a_missing_tracker_is_reported_before_anything_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    check_trackers(("tensorboard",))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "tensorboard")
    with pytest.raises(BadInput, match="tensorboard is not installed"):
        check_trackers(("tensorboard",))
    check_trackers(())
