"""Samples completions with vLLM through TRL, which copies the weights to it after every update.

Trainer and sampler compute the same numbers with different kernels. With `correction`, TRL weights each completion by
the ratio of its probabilities under both and excludes those above `max_ratio`. The sampler has the number format of the
trainer: bfloat16 with `compute.bf16`, else float32.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import is_peft_model

from envs.core.errors import BadInput
from models.optional import install_command
from models.vision.checkpoints import PROCESSOR_FILES
from training.engine.processes import process_state
from training.engine.replaced_attributes import replaced
from training.engine.sharding import weights_are_sharded
from training.grpo.evaluation import tokenizer_of, too_long_prompts
from training.grpo.examples import Example
from training.grpo.settings import GrpoSettings

Named = tuple[str, torch.Tensor]
"""A weight, and the name that vLLM knows it by."""


def vllm_arguments(settings: GrpoSettings) -> dict[str, Any]:
    """TRL's arguments for sampling with vLLM, or without it. Raises BadInput where it is not installed."""
    vllm = settings.vllm
    if vllm is None:
        return {"use_vllm": False}
    if find_spec("vllm") is None:
        raise BadInput(f"vllm: sampling needs the package vllm in this environment: {install_command('vllm')}")
    return {
        "use_vllm": True,
        "vllm_mode": vllm.mode,
        "vllm_server_base_url": vllm.url or None,
        "vllm_gpu_memory_utilization": vllm.memory,
        "vllm_tensor_parallel_size": vllm.tensor_parallel,
        "vllm_enable_sleep_mode": vllm.sleep,
        "vllm_max_model_length": settings.compute.max_tokens,
        "vllm_importance_sampling_correction": vllm.correction,
        "vllm_importance_sampling_mode": "sequence_mask",
        "vllm_importance_sampling_clip_max": vllm.max_ratio,
    }


def check_image_prompts(examples: Sequence[Example], settings: GrpoSettings, processor: Any) -> None:
    """Raises BadInput if a prompt with its image leaves no room for an answer in the length that vLLM is started with,
    or if a server would resize images to other limits. Other prompts are cut; a server has a length of its own."""
    if settings.vllm is None or examples[0].image is None:
        return
    if settings.vllm.mode == "server":
        if settings.min_pixels is not None or settings.max_pixels is not None:
            raise BadInput(
                "vllm: a server resizes images as its checkpoint says, not to min_pixels and max_pixels: write the "
                "limits to the start's preprocessor_config.json and serve that, or sample with vllm.mode='colocate'"
            )
        return
    if too_long := too_long_prompts(processor, examples, [settings.room] * len(examples)):
        example, length = too_long[0]
        raise BadInput(
            f"vllm: {len(too_long)} of {len(examples)} prompts with their images leave no room for answer_tokens "
            f"{settings.answer_tokens} in compute.max_tokens {settings.compute.max_tokens}; that of {example.name!r} "
            f"has {length} tokens: raise compute.max_tokens, or lower max_pixels"
        )


@contextmanager
def vllm_engine(settings: GrpoSettings, device: torch.device, processor: Any, out: Path) -> Generator[None]:
    """In it TRL starts vLLM in the number format of the trainer, with the trainer's limits of images, and on a CPU in a
    way that takes new weights. *out*: the run's folder of checkpoints."""
    if settings.vllm is None or settings.vllm.mode == "server":
        yield
        return
    on_cpu = device.type == "cpu"
    dtype = "bfloat16" if settings.compute.bf16 else "float32"
    from trl.generation import vllm_generation

    engine: Any = vars(vllm_generation)["LLM"]

    def start(*, model: str, **options: Any) -> Any:
        if settings.min_pixels is not None or settings.max_pixels is not None:
            model = str(_with_processor(Path(model), processor, out / f"sampler-{process_state().process_index}"))
        return engine(model=model, **options, dtype=dtype, enforce_eager=on_cpu)

    with replaced(vllm_generation, "LLM", start), _unpacked_weights() if on_cpu else nullcontext():
        yield


def _with_processor(start: Path, processor: Any, folder: Path) -> Path:
    """Makes *folder* a checkpoint with the weights of *start* and the *processor* of the run, and returns it."""
    shutil.rmtree(folder, ignore_errors=True)
    processor.save_pretrained(folder)
    for path in start.iterdir():
        if path.name not in PROCESSOR_FILES and not (folder / path.name).exists():
            (folder / path.name).symlink_to(path.resolve())
    return folder


class SentToVllm:
    """Mixin for TRL's GRPOTrainer that gives vLLM weights and prompts without a change of the policy and of prompts."""

    use_vllm: bool
    vllm_generation: Any
    processing_class: Any
    _unexpanded: list[list[int]]
    """The prompts of the current batch, where they have images."""

    def begin_vllm(self) -> None:
        """Call it when TRL has started vLLM."""
        if self.use_vllm:
            send_merged_weights(self.vllm_generation)
            let_vllm_expand_images(self.vllm_generation, lambda: self._unexpanded)

    def _tokenize_prompts(self, prompts: list[Any]) -> Any:
        """TRL's encoding of *prompts* with images."""
        if self.use_vllm:
            self._unexpanded = unexpanded_prompts(self.processing_class, prompts)
        trainer: Any = super()
        return trainer._tokenize_prompts(prompts)


def unexpanded_prompts(processor: Any, conversations: Sequence[Any]) -> list[list[int]]:
    """Token ids of *conversations* with one placeholder for an image, as the chat template writes it."""
    tokenizer = tokenizer_of(processor)
    texts: list[str] = processor.apply_chat_template(conversations, add_generation_prompt=True, tokenize=False)
    begun = tokenizer.bos_token is not None and texts[0].startswith(tokenizer.bos_token)
    return tokenizer(texts, add_special_tokens=not begun)["input_ids"]


def let_vllm_expand_images(generation: Any, unexpanded: Callable[[], list[list[int]]]) -> None:
    """Lets TRL's *generation* give vLLM the *unexpanded* prompts of a batch with images.

    TRL gives it prompts in which each image has all of its tokens, and vLLM expands the first of them once more. A
    server takes such prompts, because TRL tells it where the images are. The sampling raises BadInput where vLLM makes
    other tokens of a prompt than the trainer.
    """
    if generation.mode == "server":
        return
    generate = generation.generate

    def checked(prompts: list[list[int]], images: Any, **options: Any) -> Any:
        if images is None:
            return generate(prompts=prompts, images=images, **options)
        seen, *answers = generate(prompts=unexpanded(), images=images, **options)
        if other := sum(list(one) != list(two) for one, two in zip(seen, prompts, strict=True)):
            raise BadInput(
                f"vllm: {other} of {len(prompts)} prompts with images have other tokens in vLLM than in training; "
                "its version processes images of this model otherwise: sample without it (vllm=none)"
            )
        return seen, *answers

    generation.generate = checked


def send_merged_weights(generation: Any) -> None:
    """Lets TRL's *generation* send vLLM the weights of an adapted policy without a change of the policy.

    TRL adds the adapters to the frozen weights in place and subtracts them again. The rounding of both remains, so that
    policy and reference would drift with every update. Weights that FSDP divides are in float32 and stay with TRL.
    """
    if is_peft_model(generation.model) and not weights_are_sharded():
        generation._iter_named_params = partial(_merged_weights, generation.model, generation._iter_named_params)


def _merged_weights(model: Any, weights: Callable[[], Iterator[Named]]) -> Iterator[Named]:
    """The named *weights* of TRL, those with adapters as a sum, one at a time."""
    from peft.tuners.lora import LoraLayer

    layers = {layer.weight.data_ptr(): layer for layer in model.modules() if isinstance(layer, LoraLayer)}
    with replaced(model, "merge_adapter", _nothing), replaced(model, "unmerge_adapter", _nothing):
        for name, weight in weights():
            layer: Any = layers.get(weight.data_ptr())
            yield name, weight if layer is None else _merged(weight, layer)


def _merged(weight: torch.Tensor, layer: Any) -> torch.Tensor:
    for adapter in layer.active_adapters:
        weight = (weight + layer.get_delta_weight(adapter)).to(weight.dtype)
    return weight


def _nothing() -> None:
    pass


@contextmanager
def _unpacked_weights() -> Generator[None]:
    """On a CPU vLLM packs the weights of linear layers after loading, drops the originals, and takes no others later.
    In it layers are built that multiply with the weights that they hold."""
    layers = import_module("vllm.model_executor.layers.utils")
    with replaced(layers, "dispatch_cpu_unquantized_gemm", _multiply_unpacked):
        yield


def _multiply_unpacked(layer: Any, **_: object) -> None:
    layer.cpu_linear = torch.nn.functional.linear
