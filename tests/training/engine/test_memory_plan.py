"""The planned peak against the peak that PyTorch's CPU allocator reports while a real stage trains."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from transformers import AutoConfig, LlamaConfig

from tests.training.engine.families import SIZE, save_family
from training.data.columns import Column
from training.engine import sft, stage_jobs, stage_memory
from training.engine.memory_plan import Peak, planned_rows
from training.engine.settings import Compute, Lora, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.engine.stage_jobs import StageJob, write_job
from training.engine.stage_memory import ANSWER_SHARE, fine_tuning_peak, stage_peaks

torch.set_num_threads(1)
TOLERANCE = 0.15
COMPUTE = Compute(cpu=True, threads=1, max_tokens=256, pack_tokens=512)
LORA: dict[str, Any] = {"lora": Lora(rank=4)}
WAYS: dict[str, dict[str, Any]] = {
    "every weight": {},
    "LoRA": LORA,
    "LoRA in bfloat16": {**LORA, "bf16": True},
    "recomputed": {**LORA, "bf16": True, "gradient_checkpointing": True},
    "every weight, recomputed": {"bf16": True, "gradient_checkpointing": True},
    "shared_base": {**LORA, "shared_base": True, "bf16": True, "gradient_checkpointing": True},
}
COVERED = ("LoRA", "every weight, recomputed", "every weight", "recomputed")
"""Ways whose parts the others have, too."""
CASES = [
    *(("gemma3", way) for way in WAYS if way not in COVERED),
    *(pytest.param("gemma3", way, marks=pytest.mark.heavy) for way in COVERED),
    ("llama", "recomputed"),
    pytest.param("llama", "every weight", marks=pytest.mark.heavy),
    *(pytest.param("qwen3", way, marks=pytest.mark.heavy) for way in ("every weight", "recomputed")),
]


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: save_family(name, tmp_path_factory.mktemp(name) / "start") for name in ("gemma3", "qwen3", "llama")}


def allocated(prof: Any) -> int:
    """Peak of the bytes that were allocated and not freed while *prof* ran."""
    events = [event for event in prof.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


def stored(model: Any) -> int:
    own = {tensor.untyped_storage()._cdata: tensor for tensor in (*model.parameters(), *model.buffers())}
    return sum(tensor.numel() * tensor.element_size() for tensor in own.values())


def peak_while(model: Any, trains: Callable[[], object]) -> int:
    """Bytes of the weights of *model* and of all that is allocated beside them, at the peak while *trains* runs."""
    gc.collect()  # what earlier models left would be freed, and subtracted, while the stage is measured
    weights = stored(model)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        trains()
    return weights + allocated(prof)


def measured(kind: Any, start: Path, compute: Compute, out: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Trains a stage of two steps, of two packed sequences each."""
    rows = planned_rows(4 * compute.pack_tokens, compute.max_tokens, ANSWER_SHARE)
    how = Optimization(learning_rate=1e-4, batch_rows=len(rows) // 2)
    columns = {Column.TARGET: [0.5] * len(rows), Column.ADVANTAGE: [0.5] * len(rows)}
    columns |= {Column.REFERENCE: [-5.0] * len(rows)}
    write_job(out, StageJob(kind=kind, start=start, optimization=how, compute=compute), rows, columns)
    peaks: list[int] = []
    train = stage_jobs.train

    def profiled(trainer: Any, *arguments: Any) -> Any:
        logs: list[Any] = []
        peaks.append(peak_while(trainer.model, lambda: logs.append(train(trainer, *arguments))))
        return logs[0]

    monkeypatch.setattr(stage_jobs, "train", profiled)
    stage_jobs.run_job(out)
    return peaks[0]


def measured_fine_tuning(start: Path, compute: Compute, out: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Fine-tunes in two steps, of two packed sequences each."""
    rows = planned_rows(4 * compute.pack_tokens, compute.max_tokens, ANSWER_SHARE)
    how = Optimization(learning_rate=1e-4, batch_rows=len(rows) // 2)
    peaks: list[int] = []
    train_on = sft.train_on

    def profiled(trainer: Any, checkpoints: Path) -> None:
        peaks.append(peak_while(trainer.model, lambda: train_on(trainer, checkpoints)))

    monkeypatch.setattr(sft, "train_on", profiled)
    supervised(SupervisedJob(start=start, optimization=how, compute=compute), rows, out)
    return peaks[0]


def by_stage(start: Path, compute: Compute) -> dict[str, Peak]:
    return {peak.stage: peak for peak in stage_peaks(AutoConfig.from_pretrained(start), compute)}


@pytest.mark.parametrize(("family", "way"), CASES)
def test_the_plan_is_within_15_percent_of_the_measured_peak(
    starts: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, way: str
) -> None:
    compute, start = COMPUTE.model_copy(update=WAYS[way]), starts[family]
    planned = by_stage(start, compute)
    errors: dict[str, float] = {}
    for kind, stage in (("actor", "actor"), ("value", "critic")):
        with monkeypatch.context() as patched:
            actual = measured(kind, start, compute, tmp_path / kind, patched)
        errors[stage] = planned[stage].total / actual - 1
    assert all(abs(error) <= TOLERANCE for error in errors.values()), errors


@pytest.mark.parametrize("way", ["every weight", "LoRA in bfloat16", "recomputed"])
@pytest.mark.parametrize("family", ["gemma3", pytest.param("qwen3", marks=pytest.mark.heavy)])
def test_the_plan_of_a_fine_tuning_is_within_15_percent_of_the_measured_peak(
    starts: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, way: str
) -> None:
    compute, start = COMPUTE.model_copy(update=WAYS[way]), starts[family]
    planned = fine_tuning_peak(AutoConfig.from_pretrained(start), compute)
    actual = measured_fine_tuning(start, compute, tmp_path / "out", monkeypatch)
    assert planned.total == pytest.approx(actual, rel=TOLERANCE), planned


def _all_layers(shape: Any) -> int:
    del shape
    return 9


@pytest.mark.parametrize("recomputed", [False, True])
def test_a_deep_model_is_extrapolated_from_a_few_layers(recomputed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    size: dict[str, Any] = {**SIZE, "num_hidden_layers": 9}
    config = LlamaConfig(**size)
    small = {"max_tokens": 128, "pack_tokens": 128, "gradient_checkpointing": recomputed}
    compute = COMPUTE.model_copy(update=small)
    planned = stage_peaks(config, compute)
    monkeypatch.setattr(stage_memory, "layer_period", _all_layers)
    for peak, whole in zip(planned, stage_peaks(config, compute), strict=True):
        assert peak.total == pytest.approx(whole.total, rel=0.02), (peak, whole)
