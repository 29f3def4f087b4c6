"""`mira train plan` for GRPO: whether a run fits its GPUs and can change the model, before anything is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from envs.core.errors import BadInput
from models.local.vision_loading import UNREADABLE, load_processor, loading_error
from training.engine.language_model import hidden_width
from training.engine.learning_rate_check import LEAST_CHANGE, UpdateBound
from training.engine.memory_plan import Peak
from training.grpo.frames import limit_pixels
from training.grpo.memory import grpo_peaks, picture_of
from training.grpo.settings import GrpoSettings
from training.loop.resource_plan import RateMargin, TrainingPlan, sharing_of

ADVICE: Final = {
    "weights": "set compute.bf16 with compute.lora: frozen weights are held in bfloat16",
    "reference": "train adapters (compute.lora), whose reference is the model without them, or set kl=0",
    "gradients": "train adapters (compute.lora)",
    "optimizer": "train adapters (compute.lora)",
    "sampler": "lower vllm.memory, set vllm.sleep, or sample on other GPUs (vllm.mode='server')",
    "cache": "lower optimization.batch_rows, or take more processes",
    "activations": "set compute.gradient_checkpointing, or lower micro_rows, max_pixels or optimization.batch_rows",
    "logits": "lower micro_rows",
}


def plan_grpo(
    settings: GrpoSettings,
    config: Any,
    name: str,
    *,
    image: tuple[int, int] | None = None,
    prompt: int | None = None,
    gpus: int | None = None,
    gpu_bytes: int,
) -> TrainingPlan:
    """The plan of *settings* for a model of the transformers configuration *config*, called *name*: a checkpoint's
    folder or a shipped architecture.

    *image*: width and height of the screenshots, None for prompts of text. *prompt*: tokens of the longest prompt, None
    where it is not known (:func:`training.grpo.memory.grpo_peaks`). *gpus*: processes; None takes the launcher's.
    Raises BadInput.
    """
    sharing = sharing_of(settings.launcher, gpus)
    picture = None if image is None else picture_of(config, image, settings, _processor(name, settings))
    peaks = with_vllm(
        grpo_peaks(config, settings, picture=picture, prompt=prompt, sharing=sharing), settings, gpu_bytes
    )
    return TrainingPlan(
        model=name,
        **sharing.reported,
        gpu_bytes=gpu_bytes,
        peaks=peaks,
        rates=_rates(settings, hidden_width(config)),
        advice=ADVICE,
    )


def with_vllm(peaks: tuple[Peak, ...], settings: GrpoSettings, gpu_bytes: int) -> tuple[Peak, ...]:
    """*peaks* where vLLM samples: in the training processes it reserves a share of each GPU, on a server none."""
    vllm = settings.vllm
    if vllm is None:
        return peaks
    reserved = round(vllm.memory * gpu_bytes) if vllm.mode == "colocate" else 0
    sampling, *others = peaks
    sampling = sampling.model_copy(update={"cache": 0, "activations": 0, "logits": 0, "sampler": reserved})
    held = 0 if vllm.sleep else reserved
    return (sampling, *(peak.model_copy(update={"sampler": held}) for peak in others))


def _rates(settings: GrpoSettings, width: int) -> tuple[RateMargin, ...]:
    """Without a number of updates it is that of the examples, which are not known here."""
    if settings.steps is None:
        return ()
    optimization = settings.optimization
    bound = UpdateBound("optimization", optimization, settings.steps, width, settings.compute.lora)
    change = bound.change
    return (
        RateMargin(stage="policy", rate=optimization.learning_rate, change=change, times_least=change / LEAST_CHANGE),
    )


def _processor(name: str, settings: GrpoSettings) -> Any:
    if not Path(name).is_dir():
        return None
    try:
        processor = load_processor(Path(name))
    except UNREADABLE as error:
        raise BadInput(f"{name!r} has no processor of images: {loading_error(error)}") from error
    limit_pixels(processor, settings.min_pixels, settings.max_pixels)
    return processor
