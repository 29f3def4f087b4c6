"""`mira train plan`: whether a configuration can learn and fits its GPUs, before anything is loaded or played."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from envs.core.errors import BadInput
from envs.core.record import Record
from training.configs import HERE
from training.engine.checkpoints import read_config
from training.engine.language_model import hidden_width
from training.engine.learning_rate_check import LEAST_CHANGE, UpdateBound, check_rate
from training.engine.memory_plan import GAPS, GB, RESERVE, Peak, Sharing
from training.engine.sharding import ZERO_3
from training.engine.stage_memory import fine_tuning_peak, stage_peaks
from training.engine.tree_attention import UnpackableLayers
from training.loop.rates import check_rates, rate_bounds
from training.loop.settings import LoopSettings
from training.loop.sft import SupervisedSettings, update_bound
from training.starts import start_folder

ARCHITECTURES = HERE / "architectures"
"""Published shapes of models, which are not shipped themselves."""
_COUNTS = ("num_processes", "nproc_per_node")


class RateMargin(Record):
    """How far a stage's learning rate is above the least that changes a model."""

    stage: str
    rate: float
    change: float
    """Upper bound on the relative change of a layer's output in a phase."""
    times_least: float


class TrainingPlan(Record):
    """What a phase, a fine-tuning, or a run of GRPO needs."""

    model: str
    processes: int
    sharded: bool
    zero: int = 0
    """Stage of DeepSpeed's ZeRO; 0: without DeepSpeed."""
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
        return max(self.peaks, key=lambda peak: peak.reserved)

    @property
    def loaded(self) -> int:
        """Bytes of main memory in which a process has weights at most, before they are on the GPU."""
        return max(peak.loaded for peak in self.peaks)

    def check(self) -> None:
        """Raises BadInput where a stage does not fit."""
        peak = self.largest
        if peak.reserved > self.usable:
            most = max(self.advice, key=peak.__getattribute__)
            raise BadInput(
                f"the {peak.stage} needs {peak.total / GB:.1f} GB in each of {self.processes} processes, "
                f"{peak.reserved / GB:.1f} GB with {GAPS:.0%} for gaps of the allocator, and a GPU of "
                f"{self.gpu_bytes / GB:.0f} GB has {self.usable / GB:.1f} GB for it. The largest part is {most}: "
                f"{self.advice[most]}"
            )


_ADVICE = {
    "weights": "train adapters on one base (compute.shared_base, compute.bf16), or shard the weights (FSDP 2)",
    "gradients": "train adapters (compute.lora), or shard the weights (FSDP 2)",
    "optimizer": "train adapters (compute.lora), or shard the weights (FSDP 2)",
    "gathered": "train adapters on one base (compute.shared_base) without sharding",
    "activations": "set compute.gradient_checkpointing, or lower compute.pack_tokens",
    "logits": "lower compute.pack_tokens",
}
_FINE_TUNING_ADVICE = {
    **_ADVICE,
    "weights": "set compute.bf16 with compute.lora: frozen weights are held in bfloat16; or shard the weights (FSDP 2)",
    "gathered": "train adapters (compute.lora, compute.bf16) without sharding",
}


def plan_training(settings: LoopSettings, config: Any, name: str, *, gpus: int | None, gpu_bytes: int) -> TrainingPlan:
    """The plan of *settings* for a model of the transformers configuration *config*, called *name*. *gpus*: processes;
    None takes those of the launcher. Raises BadInput where a learning rate is too low."""
    sharing = sharing_of(settings.launcher, gpus)
    width = hidden_width(config)
    if settings.phases:
        check_rates(settings, width)
    rates = tuple(_margin(bound.name.partition(".")[0], bound) for _, bound in rate_bounds(settings, width))
    peaks = stage_peaks(config, settings.compute, critics=settings.needs_value, sharing=sharing)
    return TrainingPlan(
        model=name,
        **sharing.reported,
        gpu_bytes=gpu_bytes,
        peaks=peaks,
        rates=rates,
    )


def plan_fine_tuning(
    settings: SupervisedSettings, config: Any, name: str, *, rows: int | None, gpus: int | None, gpu_bytes: int
) -> TrainingPlan:
    """The plan of *settings* of `mira train sft` on packed rows, as :func:`plan_training`. *rows*: the number of
    training rows; None leaves out the learning rate's margin, which depends on it. Raises BadInput where the rate is
    too low, or for a model that is trained on padded rows, whose memory is not planned."""
    sharing = sharing_of(settings.launcher, gpus)
    bounds = () if rows is None else (update_bound(settings, rows, hidden_width(config)),)
    for bound in bounds:
        check_rate(bound)
    try:
        peak = fine_tuning_peak(config, settings.compute, sharing=sharing)
    except UnpackableLayers as error:
        raise BadInput(
            f"{name}: models of type {config.model_type} are fine-tuned on padded rows, whose memory is not planned"
        ) from error
    return TrainingPlan(
        model=name,
        **sharing.reported,
        gpu_bytes=gpu_bytes,
        peaks=(peak,),
        rates=tuple(_margin(peak.stage, bound) for bound in bounds),
        advice=_FINE_TUNING_ADVICE,
    )


def sharing_of(launcher: tuple[str, ...], gpus: int | None) -> Sharing:
    """How *gpus* processes, or those that *launcher* names, share a model. Raises BadInput where the launcher does not
    say it: its configuration file is not read."""
    processes = gpus or launched_processes(launcher)
    sharded, zero = is_sharded(launcher), zero_stage(launcher)
    options = _options(launcher)
    if "config_file" in options and not options.keys() & {"use_fsdp", "use_deepspeed", "multi_gpu"}:
        raise BadInput(
            "the launcher's --config_file is not read, and may shard the weights: name --use_fsdp, --use_deepspeed or"
            " --multi_gpu (each process holds all weights) in the launcher, too"
        )
    return Sharing(processes=processes, sharded=sharded, zero=zero, foreach=True)


def _margin(stage: str, bound: UpdateBound) -> RateMargin:
    rate, change = bound.optimization.learning_rate, bound.change
    return RateMargin(stage=stage, rate=rate, change=change, times_least=change / LEAST_CHANGE)


def launched_processes(launcher: tuple[str, ...]) -> int:
    """Number of processes that *launcher* names, on all nodes; 1 without a launcher. Raises BadInput where it names
    none."""
    options = _options(launcher)
    count = next((options[name] for name in _COUNTS if options.get(name, "").isdecimal()), None)
    if launcher and count is None:
        raise BadInput(f"the launcher names no number of processes (--{', --'.join(_COUNTS)}): give --gpus")
    if options.get("num_processes", "").isdecimal():  # accelerate counts those of all nodes
        return int(count or 1)
    nodes = options.get("nnodes", "1")
    if not nodes.isdecimal():
        raise BadInput(f"the launcher's --nnodes {nodes} is a range: give --gpus, the number of all nodes' GPUs")
    return int(count or 1) * int(nodes)


def is_sharded(launcher: tuple[str, ...]) -> bool:
    """Whether the processes of *launcher* each hold a part of the weights (FSDP)."""
    return "use_fsdp" in _options(launcher)


def zero_stage(launcher: tuple[str, ...]) -> Literal[0, 1, 2]:
    """The stage of DeepSpeed's ZeRO that *launcher* names; 0 without DeepSpeed. Raises BadInput for a stage that is not
    supported."""
    options = _options(launcher)
    if "use_deepspeed" not in options:
        return 0
    stage = options.get("zero_stage", "2")  # accelerate's default
    stages: dict[str, Literal[0, 1, 2]] = {"0": 0, "1": 1, "2": 2}
    if stage not in stages:
        raise BadInput(f"--zero_stage {stage!r} of the launcher: {ZERO_3}")
    return stages[stage]


def _options(launcher: tuple[str, ...]) -> dict[str, str]:
    """The options of *launcher*, `--name value` or `--name=value`, by name with `_` for `-`. Of a flag without a
    value it is the word that follows."""
    options: dict[str, str] = {}
    for word, following in pairwise((*launcher, "")):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            options[name.replace("-", "_")] = value if equals else following
    return options


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
