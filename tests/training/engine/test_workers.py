"""One start of the launched processes and one load of the shared base for all stages and scoring passes of a phase."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.training.engine.fsdp_on_cpu import SHARDED, TWO, WHAT_ACCELERATE_TELLS
from tests.training.engine.token_rows import rows_of
from training.data.columns import Column
from training.engine import shared_base_lora, workers
from training.engine.scoring import ScoreKind, score
from training.engine.settings import Compute, Lora, Optimization
from training.engine.stage_jobs import StageJob, launch, write_job
from training.engine.stage_runner import StageRunner, stage_runner
from training.engine.trainer import TrainingDiverged
from training.engine.workers import Session, run_session

ROWS = rows_of(12, longest=30)
COMPUTE = Compute(cpu=True, threads=1, pack_tokens=120)
SHARED_BASE = COMPUTE.model_copy(update={"shared_base": True, "lora": Lora(rank=4)})


def job_of(kind: Any, start: Path, compute: Compute) -> StageJob:
    how = Optimization(learning_rate=1e-3, batch_rows=6)
    return StageJob(kind=kind, start=start, optimization=how, compute=compute)


def phase(runner: StageRunner, out: Path, compute: Compute) -> tuple[Path, Path]:
    """Scores, trains a critic, scores it, trains an actor on its values: (critic, actor)."""
    start = embedded_dir()
    references = runner.score("actions", start, ROWS, compute)
    write_job(out / "value", job_of("value", start, compute), ROWS, {Column.TARGET: [0.0, 1.0] * 6})
    critic = runner.stage(out / "value")
    values = runner.score("states", critic, ROWS, compute)
    columns = {Column.ADVANTAGE: values, Column.REFERENCE: references}
    write_job(out / "actor", job_of("actor", start, compute), ROWS, columns)
    return critic, runner.stage(out / "actor")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The commands that a session starts."""
    commands: list[Any] = []
    popen = subprocess.Popen

    def record(command: Any, **options: Any) -> Any:
        commands.append(command)
        return popen(command, **options)

    monkeypatch.setattr(workers.subprocess, "Popen", record)
    return commands


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "computes", "environ"),
    [
        pytest.param(TWO, {"whole": COMPUTE, "shared_base": SHARED_BASE}, {}, id="whole models, then a shared base"),
        # test_fsdp.py runs its stages, scores and fine-tunings in one session
        pytest.param(SHARDED, {"parts": COMPUTE}, WHAT_ACCELERATE_TELLS, marks=pytest.mark.heavy, id="parts of one"),
    ],
)
def test_a_phase_starts_its_processes_once(  # noqa: PLR0917 - fixtures
    tmp_path: Path,
    launcher: tuple[str, ...],
    computes: dict[str, Compute],
    environ: dict[str, str],
    started: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was five to seven starts, each with its own load of the weights."""
    alone: dict[str, tuple[Path, Path]] = {}
    for name, compute in computes.items():
        with stage_runner((), tmp_path / "alone") as runner:
            alone[name] = phase(runner, tmp_path / "alone" / name, compute)
    for name, value in {"ACCELERATE_USE_CPU": "true", **environ}.items():
        monkeypatch.setenv(name, value)
    with stage_runner(launcher, tmp_path / "together") as runner:
        together = {name: phase(runner, tmp_path / "together" / name, compute) for name, compute in computes.items()}
    assert len(started) == 1
    assert {path.name for path in (tmp_path / "together").iterdir()} == set(computes), "nothing is left"
    monkeypatch.delenv("ACCELERATE_USE_FSDP", raising=False)
    kinds: tuple[ScoreKind, ScoreKind] = ("states", "actions")
    for name, compute in computes.items():
        for kind, own, expected in zip(kinds, together[name], alone[name], strict=True):
            assert score(kind, own, ROWS, compute) == pytest.approx(score(kind, expected, ROWS, compute), abs=2e-3)


@pytest.mark.slow
def test_a_failing_stage_ends_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    write_job(tmp_path / "value", job_of("value", embedded_dir(), COMPUTE), ROWS, {Column.TARGET: [float("nan")] * 12})
    with (
        pytest.raises(TrainingDiverged, match="step 1: the loss is nan"),
        stage_runner((sys.executable, "-m"), tmp_path) as runner,
    ):
        runner.stage(tmp_path / "value")
    assert not (tmp_path / "workers").exists()


def test_a_launcher_that_ends_at_once_is_one_line(tmp_path: Path) -> None:
    with (
        pytest.raises(BadInput, match="ended with exit code 1"),
        stage_runner(("false",), tmp_path) as runner,
    ):
        runner.score("actions", embedded_dir(), ROWS, COMPUTE)


def test_workers_end_with_the_process_that_gives_the_jobs(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    session = Session(host=workers.socket.gethostname(), pid=gone.pid, token="a")
    (tmp_path / workers.SESSION).write_text(session.model_dump_json())
    run_session(tmp_path, lambda folder: pytest.fail(f"no job was given, but {folder} ran"))


def test_a_shared_base_is_loaded_once_in_a_phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Path] = []
    load = shared_base_lora.load_policy

    def record(folder: Path, **options: Any) -> Any:
        loads.append(folder)
        return load(folder, **options)

    monkeypatch.setattr(shared_base_lora, "load_policy", record)
    with stage_runner((), tmp_path / "one") as runner:
        critic, actor = phase(runner, tmp_path / "one", SHARED_BASE)
    assert len(loads) == 1
    write_job(tmp_path / "fresh", job_of("value", embedded_dir(), SHARED_BASE), ROWS, {Column.TARGET: [0.0, 1.0] * 6})
    fresh = launch(tmp_path / "fresh")
    assert score("states", critic, ROWS, SHARED_BASE) == pytest.approx(
        score("states", fresh, ROWS, SHARED_BASE), abs=1e-6
    ), "nothing of an earlier job is left in the shared models"
    assert (actor / "adapter_config.json").is_file()
