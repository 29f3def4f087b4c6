"""Loads a checkpoint: a folder of transformers weights or a GGUF file, with an optional PEFT adapter.

A folder with an image encoder is loaded as a vision-language model, with its processor.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Generator as Generates
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.base import ModelUnavailable
from models.local.batch_generation import Generator
from models.local.cores import usable_cores
from models.local.declarations import is_trained_in_bfloat16
from models.local.decode_attention import speed_up_decoding
from models.local.gguf_copies import converted, gguf_file, is_quantized_copy
from models.local.gpu_attention import avoid_cudnn_attention
from models.local.packed_weights import pack_weights
from models.local.safe_loading import ADAPTER_CONFIG, LOCAL, WEIGHTS, adapter_problem, weights_problem
from models.local.vision_loading import UNREADABLE, loading_error, templated_processor
from models.prompting.prompt_tokens import turn_end
from models.vision.checkpoints import has_processor, is_vision_checkpoint

MOST_THREADS = 8
DEFAULT_CONTEXT = 4_096
"""Context in tokens if a checkpoint declares none."""
SMALL_PARAMETERS = 20_000_000
"""Models below this size run on one thread, which is faster and leaves cores to the browser."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A causal model in eval mode and its tokenizer."""

    model: Any
    tokenizer: Any
    processor: Any = None
    """Of a vision-language model: pads on the left, and holds the tokenizer."""
    vision_problem: str = ""
    """Why a vision-language model is used for text alone: its processor cannot be read."""


def load_generator(folder: Path, adapter: Path | None, spec: str) -> tuple[Generator, int]:
    """(generator, context in tokens). Uses no network. Raises :class:`ModelUnavailable`."""
    read = read_checkpoint(folder, adapter, spec=spec, playing=True, vision=is_vision_checkpoint(folder))
    _set_threads(read.model)
    ends, context = declared_ends(read.model, read.tokenizer), declared_context(read.model.config, read.tokenizer)
    if read.processor is None:
        speed_up_decoding(read.model)
        pack_weights(read.model)
        return Generator(read.model, read.tokenizer, ends, vision_problem=read.vision_problem), context
    from models.local.vision_generation import VisionGenerator

    return VisionGenerator(read.model, read.processor, ends), context


def read_checkpoint(
    folder: Path,
    adapter: Path | None = None,
    *,
    merge: bool = True,
    on_cpu: bool = False,
    spec: str | None = None,
    playing: bool = False,
    vision: bool = False,
) -> Checkpoint:
    """Loads the checkpoint in *folder*, or the copy of a GGUF file (*folder*, or the only one in it), with a PEFT
    adapter.

    *merge* adds the adapter to the weights; without it the adapter stays a separate layer (the same function up to
    rounding). An adapter with a tokenizer replaces the model's, because it was trained with it.

    On the CPU weights are float32. If the model is only *playing* text and the CPU multiplies bfloat16, they are
    bfloat16 where that is precise enough (`plays_in_bfloat16`), which takes half the memory and processes prompts 1.7
    times faster.

    *vision*: also its image encoder and its processor.

    Uses no network. Raises :class:`ModelUnavailable`, in one line that begins with *spec*, also if the adapter does not
    fit the model.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    name = spec or f"local:{folder}{f'+{adapter}' if adapter else ''}"
    if adapter is not None and not (adapter / ADAPTER_CONFIG).is_file():
        raise ModelUnavailable(f"{name}: {str(adapter)!r} holds no {ADAPTER_CONFIG}, so it is not a PEFT adapter")
    from safetensors import SafetensorError

    file = gguf_file(folder)
    if problem := (None if file else weights_problem(folder)) or (adapter and adapter_problem(adapter)):
        raise ModelUnavailable(f"{name}: {problem}")
    try:
        place = folder if file is None else converted(file, name)
        half = playing and not vision and _multiplies_bfloat16() and plays_in_bfloat16(place, adapter)
        return _read(place, adapter, merge=merge, on_cpu=on_cpu, half=half, vision=vision)
    except (*UNREADABLE, SafetensorError) as error:
        reason = loading_error(error)
        raise ModelUnavailable(f"{name}: cannot be loaded: {type(error).__name__}: {reason}") from error


def plays_in_bfloat16(folder: Path, adapter: Path | None) -> bool:
    """Whether bfloat16 is precise enough for the model in *folder* with *adapter*.

    It is if they declare that they were trained with products in bfloat16 (`compute.bf16`), which round the weights in
    the same way. Without an adapter it also is if the weights are stored as bfloat16, or come from quantized weights
    of a GGUF file, which are less precise.
    """
    if adapter is not None:
        return is_trained_in_bfloat16(adapter)
    return is_trained_in_bfloat16(folder) or is_quantized_copy(folder) or _is_stored_in_bfloat16(folder)


def _is_stored_in_bfloat16(folder: Path) -> bool:
    """Whether the configuration in *folder* says that its weights are bfloat16."""
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return "bfloat16" in (config.get("dtype"), config.get("torch_dtype"))


def _multiplies_bfloat16() -> bool:
    """Whether the CPU has instructions for bfloat16; without them it is much slower than float32."""
    import torch

    capabilities: Any = getattr(torch.cpu, "get_capabilities", dict)()  # of PyTorch 2.10 and newer
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16"))


def _read(folder: Path, adapter: Path | None, *, merge: bool, on_cpu: bool, half: bool, vision: bool) -> Checkpoint:
    import torch
    from transformers import AutoModelForImageTextToText, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    on_gpu = torch.cuda.is_available() and not on_cpu
    if on_gpu:
        avoid_cudnn_attention()
    # In half precision, merging would round away most of a small adapter.
    on_this_cpu = torch.bfloat16 if half and adapter is None else torch.float32
    options: dict[str, Any] = {"dtype": "auto" if on_gpu else on_this_cpu, **WEIGHTS}
    brings_tokenizer = adapter is not None and (adapter / "tokenizer_config.json").is_file()
    texts = adapter if adapter is not None and brings_tokenizer else folder
    processor, problem = _processor(folder, adapter) if vision else (None, "")
    tokenizer = AutoTokenizer.from_pretrained(texts, **LOCAL) if processor is None else processor.tokenizer
    model: Any = (
        AutoModelForImageTextToText.from_pretrained(folder, **options)
        if processor is not None
        else _text_model(folder, options, problem)
    )
    declare_turn_end(model, tokenizer)
    if adapter is not None:
        model = _with_adapter(model, adapter)
        model = model.merge_and_unload() if merge and model.dtype == torch.float32 else model
        if half and not on_gpu:
            model = model.to(torch.bfloat16)
    return Checkpoint(model.to("cuda" if on_gpu else "cpu").eval(), tokenizer, processor, problem)


def _text_model(folder: Path, options: dict[str, Any], problem: str) -> Any:
    """Raises OSError with the *problem* of its processor where transformers has no text model of this type."""
    from transformers import AutoModelForCausalLM

    try:
        return AutoModelForCausalLM.from_pretrained(folder, **options)
    except ValueError as error:
        if not problem:
            raise
        raise OSError(problem) from error


def _processor(folder: Path, adapter: Path | None) -> tuple[Any, str]:
    """(processor, ""), or (None, problem) where it cannot be read, such as without torchvision. Raises ValueError if it
    has no chat template."""
    try:
        return templated_processor(_processor_folder(folder, adapter), folder), ""
    except (OSError, ImportError, AttributeError, KeyError, TypeError) as error:
        return None, loading_error(error)


def _processor_folder(folder: Path, adapter: Path | None) -> Path:
    """The folder of the processor: the adapter's if it brings one."""
    return adapter if adapter is not None and has_processor(adapter) else folder


def _with_adapter(model: Any, adapter: Path) -> Any:
    """Raises ValueError if the adapter's file and the model's adapter layers have different tensors.

    PEFT only warns, and returns a model without part of the adapter.
    """
    from peft import PeftModel, get_peft_model_state_dict
    from peft.utils import load_peft_weights

    with reading_old_names():
        warnings.filterwarnings("ignore", "Found missing adapter keys", UserWarning)
        warnings.filterwarnings("ignore", "Could not find a config file in", UserWarning)  # the base's name on a hub
        model = PeftModel.from_pretrained(model, adapter, local_files_only=True)
        expected = set(get_peft_model_state_dict(model))
    stored = set(load_peft_weights(str(adapter), device="cpu", local_files_only=True))
    if expected != stored:
        odd = min(expected ^ stored)
        where = "missing in the adapter's file" if odd in expected else "unknown to the model"
        raise ValueError(
            f"the adapter does not fit the model: {len(expected ^ stored)} tensors differ, {odd!r} is {where}"
        )
    return model


@contextmanager
def reading_old_names() -> Generates[None]:
    """Ignores the deprecation warnings about the old names of activation checkpointing.

    PEFT 0.21 uses them when it attaches an adapter, TRL 1.16 when it generates, and transformers 5.24 warns.
    """
    names = "`(is_gradient_checkpointing|gradient_checkpointing_(enable|disable))` is deprecated"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", names, FutureWarning)
        yield


def _set_threads(model: Any) -> None:
    """One thread for a tiny model, else all usable cores, at most MOST_THREADS."""
    import torch

    if model.device.type != "cpu":
        return
    parameters = sum(parameter.numel() for parameter in model.parameters())
    torch.set_num_threads(1 if parameters < SMALL_PARAMETERS else min(MOST_THREADS, usable_cores()))


def declared_ends(model: Any, tokenizer: Any) -> frozenset[int]:
    """Tokens that end an answer: those of the generation config and the tokenizer's own."""
    declared = getattr(model.generation_config, "eos_token_id", None)
    ends = declared if isinstance(declared, list) else [declared]
    return frozenset(token for token in [*ends, tokenizer.eos_token_id] if token is not None)


def declare_turn_end(model: Any, tokenizer: Any) -> None:
    """Adds the token that the chat template writes after an answer to the ends of the generation config, which play,
    sampling for training and servers of saved checkpoints follow. GGUF files declare a single end: for Gemma and Phi-3
    not that of the template."""
    ends, end = declared_ends(model, tokenizer), turn_end(tokenizer)
    if end is not None and end not in ends and model.generation_config is not None:
        model.generation_config.eos_token_id = sorted({*ends, end})


def declared_context(config: Any, tokenizer: Any) -> int:
    """The smaller of what a model's *config* and the tokenizer declare; transformers writes a huge number for
    "unknown"."""
    text = config.get_text_config()  # the language model of a multimodal one
    declared = [getattr(text, "max_position_embeddings", None), tokenizer.model_max_length]
    known = [int(length) for length in declared if length and length < 10_000_000]
    return min(known, default=DEFAULT_CONTEXT)
