"""Weights sharded over two processes (FSDP 2) train as in one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from models.local.loading import read_checkpoint
from tests.training.engine.critics import save_critic
from tests.training.engine.fsdp_on_cpu import SHARDED, WHAT_ACCELERATE_TELLS
from tests.training.engine.kept_processes import KeptProcesses
from tests.training.engine.test_trainer import weights_of
from tests.training.engine.token_rows import rows_of
from training.data.cache import write_rows
from training.data.columns import Column
from training.engine import sft
from training.engine.checkpoints import load_policy
from training.engine.early_stopping import read_scores
from training.engine.scoring import score, score_launched
from training.engine.settings import Compute, Lora, Objective, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.engine.stage_jobs import StageJob, launch, write_job
from training.engine.step_plan import Plan
from training.engine.trainer import TrainingDiverged

pytestmark = [pytest.mark.slow]

ROWS = rows_of(24, longest=60)
COMPUTE = Compute(cpu=True, threads=1, pack_tokens=150, save_minutes=1e-9)


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptProcesses]:
    kept = KeptProcesses(SHARDED, tmp_path_factory.mktemp("sharded") / "workers", WHAT_ACCELERATE_TELLS)
    yield kept
    kept.close()


@pytest.fixture(scope="module")
def critic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trunk is trained, too."""
    return save_critic(tmp_path_factory.mktemp("critic") / "model", std=0.1)


def job_of(kind: Any, start: Path, **compute: Any) -> tuple[StageJob, dict[Column, list[float]]]:
    ramp = torch.linspace(0, 1, len(ROWS)).tolist()
    columns = {Column.ADVANTAGE: ramp, Column.REFERENCE: [-20.0] * len(ROWS), Column.SUCCESS: [1.0] * len(ROWS)}
    job = StageJob(
        kind=kind,
        start=start,
        optimization=Optimization(learning_rate=1e-3, batch_rows=8),
        objective=Objective(beta=0.5),
        compute=COMPUTE.model_copy(update=compute),
    )
    return job, columns if kind == "actor" else {Column.TARGET: ramp}


def alone(folder: Path, job: StageJob, columns: dict[Column, list[float]]) -> Path:
    """The result of this process."""
    write_job(folder, job, ROWS, columns)
    return launch(folder)


def assert_alike(first: Path, second: Path, start: Path) -> None:
    scores, expected = weights_of(second), weights_of(first)
    before = {name: tensor.float() for name, tensor in weights_of(start).items()}
    assert scores.keys() == expected.keys()
    learned = max((expected[name] - before[name]).abs().max().item() for name in expected.keys() & before.keys())
    apart = max((scores[name] - expected[name]).abs().max().item() for name in expected)
    assert apart < 1e-4, "up to the order of sums"
    assert learned > 1e-3


def test_a_critic_resumes_from_a_sharded_checkpoint(sharded: KeptProcesses, tmp_path: Path, critic: Path) -> None:
    assert_critic_resumes(sharded, tmp_path, critic)


def assert_critic_resumes(processes: KeptProcesses, out: Path, critic: Path) -> None:
    """Its third and last step fails at first; the head has its own learning rate."""
    job, columns = job_of("value", critic)
    job = job.model_copy(update={"head_rate": 3e-3})
    folder = out / "together"
    write_job(folder, job, ROWS, {Column.TARGET: _spoiled(columns[Column.TARGET], job)})
    with pytest.raises(TrainingDiverged, match="step 3"):
        processes.run(folder)
    assert [path.name for path in (folder / "checkpoints").glob("checkpoint-*")] == ["checkpoint-2"]
    write_rows(folder / "rows.parquet", ROWS, columns)
    processes.run(folder)
    assert_alike(alone(out / "alone", job, columns), folder / "model", critic)


@pytest.mark.parametrize("lora", [None, Lora(rank=4, alpha=8)], ids=["every weight", "adapter"])
def test_an_actor(sharded: KeptProcesses, tmp_path: Path, lora: Lora | None) -> None:
    job, columns = job_of("actor", embedded_dir(), lora=lora)
    write_job(tmp_path / "sharded", job, ROWS, columns)
    sharded.run(tmp_path / "sharded")
    trained = tmp_path / "sharded" / "model"
    assert_alike(alone(tmp_path / "alone", job, columns), trained, embedded_dir())
    assert load_policy(trained)[1].encode("a") == load_policy(embedded_dir())[1].encode("a")
    assert not (tmp_path / "sharded" / "checkpoints").exists()


@pytest.mark.parametrize("kind", ["actor", "value"])
def test_bfloat16_training_starts_with_zero_log_ratios(
    sharded: KeptProcesses, tmp_path: Path, critic: Path, kind: Any
) -> None:
    """FSDP would cast the weights themselves; the rounding makes another policy."""
    job, columns = job_of(kind, critic if kind == "value" else embedded_dir(), bf16=True)
    job = job.model_copy(update={"optimization": Optimization(learning_rate=1e-9, batch_rows=len(ROWS))})
    if kind == "actor":
        columns |= {Column.REFERENCE: list(score("actions", job.start, ROWS, job.compute))}
    write_job(tmp_path / "sharded", job, ROWS, columns)
    sharded.run(tmp_path / "sharded")
    logged = json.loads((tmp_path / "sharded" / "log.json").read_text(encoding="utf-8"))[0]
    if kind == "actor":
        assert abs(logged["log_ratio"]) < 1e-4 and logged["log_ratio_spread"] < 1e-4
    else:
        alone(tmp_path / "alone", job, columns)
        expected = json.loads((tmp_path / "alone" / "log.json").read_text(encoding="utf-8"))[0]
        assert logged["loss"] == pytest.approx(expected["loss"], abs=1e-5)


def _spoiled(targets: list[float], job: StageJob) -> list[float]:
    """Replaces the target of a row of the last step by NaN."""
    plan = Plan(ROWS, batch_rows=job.optimization.batch_rows, pack_tokens=150, epochs=1, seed=job.seed)
    last = plan[len(plan) - 1].packs[0][0]
    return [math.nan if place == last else value for place, value in enumerate(targets)]


def test_scores_of_processes_that_shard_stages(sharded: KeptProcesses, tmp_path: Path, critic: Path) -> None:
    """A critic that such a session trained is scored in it; each process has the full model."""
    expected = score("states", critic, ROWS, COMPUTE)
    scores = score_launched("states", critic, ROWS, COMPUTE, folder=tmp_path / "scoring", run=sharded.run)
    assert scores == pytest.approx(expected, abs=1e-4)
    assert len(set(scores)) == len(ROWS)


def test_fine_tuning(sharded: KeptProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_fine_tuned_alike(sharded, tmp_path, monkeypatch)


def assert_fine_tuned_alike(processes: KeptProcesses, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if one of them needs more passes for its rows than the other. Scores of validation rows are equal, and the
    weights of the best score are kept."""
    how, rows = Optimization(learning_rate=1e-3, batch_rows=8, epochs=3), rows_of(16)
    compute = Compute(cpu=True, threads=1, max_tokens=60, lora=Lora(rank=4), pack_tokens=60)
    job = SupervisedJob(start=embedded_dir(), optimization=how, compute=compute)
    one = supervised(job, rows, folder / "alone", validation=rows)

    def run(launcher: tuple[str, ...], job: Path) -> None:
        processes.run(job)

    monkeypatch.setattr(sft, "run_launched", run)
    two = supervised(job, rows, folder / "together", validation=rows, launcher=("kept",))
    alone, both = ([score.loss for score in read_scores(folder / name)] for name in ("alone", "together"))
    assert both == pytest.approx(alone, rel=1e-4) and len(both) == 4
    start, sequence, together = (load_policy(at)[0].state_dict() for at in (embedded_dir(), one, two))
    apart = max((sequence[name] - together[name]).abs().max().item() for name in sequence)
    moved = max((sequence[name] - start[name]).abs().max().item() for name in sequence)
    assert apart < 1e-4, "up to the order of sums"
    assert moved > 1e-3
    names = sorted(path.name for path in (folder / "together").iterdir())
    assert names == ["adapter", "log.json", "model", "validation.json"]
    adapted = read_checkpoint(embedded_dir(), folder / "together" / "adapter", on_cpu=True).model.state_dict()
    assert all(torch.allclose(adapted[name], weight, atol=1e-6) for name, weight in together.items())


def test_shared_base_models_are_not_sharded(sharded: KeptProcesses, tmp_path: Path) -> None:
    assert_shared_base_refused(sharded, tmp_path)


def assert_shared_base_refused(processes: KeptProcesses, folder: Path) -> None:
    """The last job of *processes*: it ends them."""
    job, columns = job_of("value", embedded_dir(), shared_base=True, lora=Lora(rank=4))
    write_job(folder, job, ROWS, columns)
    with pytest.raises(BadInput, match="ended with exit code"):
        processes.run(folder)
    assert "use either that or FSDP or DeepSpeed" in processes.errors()
