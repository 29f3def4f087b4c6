"""Optimizer states and gradients in parts over two processes (DeepSpeed's ZeRO 2) train as in one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from transformers import AutoConfig

from envs.core.errors import BadInput
from models.embedded import embedded_dir
from tests.training.engine.critics import save_critic
from tests.training.engine.deepspeed_on_cpu import PARTITIONED, ZERO_2, needs_deepspeed
from tests.training.engine.deepspeed_peak import MEASURED
from tests.training.engine.families import save_family
from tests.training.engine.kept_processes import KeptProcesses
from tests.training.engine.test_fsdp import (
    ROWS,
    alone,
    assert_alike,
    assert_critic_resumes,
    assert_fine_tuned_alike,
    assert_shared_base_refused,
    job_of,
)
from tests.training.engine.test_memory_plan import COMPUTE, TOLERANCE
from training.data.columns import Column
from training.engine.memory_plan import Sharing, planned_rows
from training.engine.scoring import score
from training.engine.settings import Compute, Lora, Optimization
from training.engine.stage_jobs import StageJob, launch, write_job
from training.engine.stage_memory import ANSWER_SHARE, stage_peaks

pytestmark = [pytest.mark.heavy, needs_deepspeed]


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptProcesses]:
    kept = KeptProcesses(PARTITIONED, tmp_path_factory.mktemp("partitioned") / "workers", ZERO_2)
    yield kept
    kept.close()


@pytest.mark.parametrize("lora", [None, Lora(rank=4, alpha=8)], ids=["every weight", "adapter"])
def test_an_actor(partitioned: KeptProcesses, tmp_path: Path, lora: Lora | None) -> None:
    """Steps have several packed sequences: DeepSpeed's engine makes its step in the last backward pass."""
    job, columns = job_of("actor", embedded_dir(), lora=lora)
    write_job(tmp_path / "partitioned", job, ROWS, columns)
    partitioned.run(tmp_path / "partitioned")
    assert_alike(alone(tmp_path / "alone", job, columns), tmp_path / "partitioned" / "model", embedded_dir())


def test_a_critic_resumes(partitioned: KeptProcesses, tmp_path: Path) -> None:
    assert_critic_resumes(partitioned, tmp_path, save_critic(tmp_path / "critic", std=0.1))


def test_bfloat16_training_starts_with_zero_log_ratios(partitioned: KeptProcesses, tmp_path: Path) -> None:
    """DeepSpeed would cast the weights, and would end the autocast."""
    job, columns = job_of("actor", embedded_dir(), bf16=True)
    job = job.model_copy(update={"optimization": Optimization(learning_rate=1e-9, batch_rows=len(ROWS))})
    columns |= {Column.REFERENCE: list(score("actions", job.start, ROWS, job.compute))}
    write_job(tmp_path / "partitioned", job, ROWS, columns)
    partitioned.run(tmp_path / "partitioned")
    logged = json.loads((tmp_path / "partitioned" / "log.json").read_text(encoding="utf-8"))[0]
    assert abs(logged["log_ratio"]) < 1e-4 and logged["log_ratio_spread"] < 1e-4


def test_fine_tuning(partitioned: KeptProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_fine_tuned_alike(partitioned, tmp_path, monkeypatch)


def test_shared_base_models_are_not_partitioned(partitioned: KeptProcesses, tmp_path: Path) -> None:
    assert_shared_base_refused(partitioned, tmp_path)


def test_zero_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_zero(1, monkeypatch)
    job, columns = job_of("actor", embedded_dir())
    write_job(tmp_path / "partitioned", job, ROWS, columns)
    trained = launch(tmp_path / "partitioned", PARTITIONED)
    monkeypatch.undo()
    assert_alike(alone(tmp_path / "alone", job, columns), trained, embedded_dir())


def test_zero_3_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    use_zero(3, monkeypatch)
    job, columns = job_of("value", embedded_dir())
    write_job(tmp_path, job, ROWS, columns)
    with pytest.raises(BadInput, match="ended with exit code"):
        launch(tmp_path, PARTITIONED)
    assert "use --zero_stage 2" in capfd.readouterr().err


@pytest.mark.parametrize("compute", [COMPUTE, COMPUTE.model_copy(update={"lora": Lora(rank=4)})], ids=["all", "LoRA"])
@pytest.mark.parametrize("stage", [1, 2])
def test_the_memory_plan_is_within_15_percent_of_the_measured_peak(
    stage: Literal[1, 2], compute: Compute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with DeepSpeed's buffer of gradients, which would have 2 GB for any model."""
    start = save_family("llama", tmp_path / "start")
    rows = planned_rows(8 * compute.pack_tokens, compute.max_tokens, ANSWER_SHARE)
    columns = {Column.ADVANTAGE: [0.5] * len(rows), Column.REFERENCE: [-5.0] * len(rows)}
    optimization = Optimization(learning_rate=1e-4, batch_rows=len(rows) // 2)
    write_job(
        tmp_path / "job", StageJob(kind="actor", start=start, optimization=optimization, compute=compute), rows, columns
    )
    use_zero(stage, monkeypatch)
    launch(tmp_path / "job", MEASURED)
    measured = max(int(path.read_text(encoding="utf-8")) for path in (tmp_path / "job").glob("peak-*"))
    sharing = Sharing(processes=2, zero=stage)
    planned = stage_peaks(AutoConfig.from_pretrained(start), compute, critics=False, sharing=sharing)[0].total
    assert planned == pytest.approx(measured, rel=TOLERANCE)


def use_zero(stage: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**ZERO_2, "ACCELERATE_DEEPSPEED_ZERO_STAGE": str(stage)}.items():
        monkeypatch.setenv(name, value)
