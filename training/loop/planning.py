"""`mira train plan`: whether a configuration can learn and fits its GPUs, before anything is loaded or played."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import Field

from envs.core.errors import BadInput
from envs.core.record import Record
from training.configs import HERE
from training.engine.checkpoints import read_config
from training.engine.language_model import hidden_width
from training.engine.learning_rate_check import LEAST_CHANGE
from training.engine.memory_plan import GB, RESERVE, Peak, Sharing
from training.engine.stage_memory import stage_peaks
from training.loop.rates import check_rates, rate_bounds
from training.loop.settings import LoopSettings
from training.starts import start_folder

ARCHITECTURES = HERE / "architectures"
"""Published shapes of models, which are not shipped themselves."""
_COUNTS = ("--num_processes", "--nproc_per_node", "--nproc-per-node")


class RateMargin(Record):
    """How far a stage's learning rate is above the least that changes a model."""

    stage: str
    rate: float
    change: float
    """Upper bound on the relative change of a layer's output in a phase."""
    times_least: float


class TrainingPlan(Record):
    """What a phase, or a run of GRPO, needs."""

    model: str
    processes: int
    sharded: bool
    gpu_bytes: int
    peaks: tuple[Peak, ...]
    rates: tuple[RateMargin, ...]
    advice: Mapping[str, str] = Field(default_factory=lambda: _ADVICE, exclude=True)
    """What makes each role smaller."""

    @property
    def usable(self) -> int:
        """Bytes of a GPU without `RESERVE`."""
        return round(self.gpu_bytes * (1 - RESERVE))

    @property
    def largest(self) -> Peak:
        return max(self.peaks, key=lambda peak: peak.total)

    def check(self) -> None:
        """Raises BadInput where a stage does not fit."""
        peak = self.largest
        if peak.total > self.usable:
            most = max(self.advice, key=peak.__getattribute__)
            raise BadInput(
                f"the {peak.stage} needs {peak.total / GB:.1f} GB in each of {self.processes} processes, and a GPU of "
                f"{self.gpu_bytes / GB:.0f} GB has {self.usable / GB:.1f} GB for it; most are {most}: "
                f"{self.advice[most]}"
            )


_ADVICE = {
    "weights": "train adapters on one base (compute.lean, compute.bf16), or shard the weights (FSDP 2)",
    "gradients": "train adapters (compute.lora), or shard the weights (FSDP 2)",
    "optimizer": "train adapters (compute.lora), or shard the weights (FSDP 2)",
    "gathered": "train adapters on one base (compute.lean) without sharding",
    "activations": "set compute.gradient_checkpointing, or lower compute.pack_tokens",
    "logits": "lower compute.pack_tokens",
}


def plan_training(settings: LoopSettings, config: Any, name: str, *, gpus: int | None, gpu_bytes: int) -> TrainingPlan:
    """The plan of *settings* for a model of the transformers configuration *config*, called *name*. *gpus*: processes;
    None takes those of the launcher. Raises BadInput where a learning rate is too low."""
    processes = gpus or launched_processes(settings.launcher)
    sharing = Sharing(processes=processes, sharded=is_sharded(settings.launcher), foreach=True)
    width = hidden_width(config)
    if settings.phases:
        check_rates(settings, width)
    rates = tuple(
        RateMargin(
            stage=bound.name.partition(".")[0],
            rate=bound.how.learning_rate,
            change=bound.change,
            times_least=bound.change / LEAST_CHANGE,
        )
        for _, bound in rate_bounds(settings, width)
    )
    peaks = stage_peaks(config, settings.compute, critics=settings.needs_value, sharing=sharing)
    return TrainingPlan(
        model=name, processes=processes, sharded=sharing.sharded, gpu_bytes=gpu_bytes, peaks=peaks, rates=rates
    )


def launched_processes(launcher: tuple[str, ...]) -> int:
    """Number of processes that the words of *launcher* name; 1 if they name none."""
    for name, value in pairwise(launcher):
        if name in _COUNTS and value.isdecimal():
            return int(value)
    return 1


def is_sharded(launcher: tuple[str, ...]) -> bool:
    """Whether the processes of *launcher* each hold a part of the weights (FSDP)."""
    return "--use_fsdp" in launcher


def model_config(model: str | None, start: str, config_name: str) -> tuple[Any, str]:
    """(transformers configuration, its name) of *model*: a checkpoint's folder, or the name of a shipped architecture.

    None takes *start*; where it is no folder, the architecture that *config_name* begins with. Raises BadInput.
    """
    if model is None:
        folder = start_folder(start)
        if folder.is_dir():
            return read_config(folder), start
        model = next((name for name in reversed(architectures()) if config_name.startswith(name)), None)
        if model is None:
            raise BadInput(f"start {start!r} does not exist: name a checkpoint or an architecture with --model")
    if Path(model).is_dir():
        return read_config(Path(model)), model
    if model not in architectures():
        raise BadInput(f"--model {model!r} is neither a folder nor one of {', '.join(architectures())}")
    from transformers import AutoConfig

    values: dict[str, Any] = json.loads((ARCHITECTURES / f"{model}.json").read_text(encoding="utf-8"))
    return AutoConfig.for_model(values.pop("model_type"), **values), model


def architectures() -> tuple[str, ...]:
    """Names of the shipped architectures."""
    return tuple(sorted(file.stem for file in ARCHITECTURES.glob("*.json")))
