"""Reads and writes checkpoints of policies. What is written can be served without conversion."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from envs.core.disk_errors import writing
from envs.core.errors import BadInput, NotWritten
from models.base import ModelUnavailable
from models.local.declarations import copy_declarations
from models.local.gpu_attention import avoid_cudnn_attention
from models.local.loading import declare_turn_end, read_checkpoint, reading_old_names
from models.local.safe_loading import ADAPTER_CONFIG, LOCAL, WEIGHTS, weights_problem
from models.vision.checkpoints import copy_processor
from training.engine.half_weights import loading_half
from training.engine.language_model import encoder_layers, freeze_encoders
from training.engine.packed_model import accept_packed
from training.engine.processes import process_state
from training.engine.settings import Compute, Lora

ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER = "adapter"
"""The folder of a training with LoRA that holds the adapter, beside `model`, which has it merged."""


def load_policy(folder: Path, *, padded: bool = False, half: bool = False) -> tuple[Any, Any]:
    """Loads (causal model in float32, tokenizer); an adapter is merged into its base. With *half* the linear layers of
    a checkpoint are read in bfloat16, see :func:`training.engine.half_weights.loading_half`; an adapter is merged in
    float32.

    The model takes packed sequences, see :func:`accept_packed`, or with *padded* batches with an attention mask. Of a
    multimodal model only the language model has gradients. Never uses the network. Raises BadInput in one line.
    """
    with loading_half(half=half and not is_adapter(folder)):
        model, tokenizer = _read_policy(folder)
    freeze_encoders(model)
    if not padded:
        accept_packed(model)
    return model, tokenizer


def load_tokenizer(folder: Path) -> Any:
    """Loads the tokenizer of a checkpoint; of an adapter its own if it has one, else its base's. Raises BadInput."""
    from transformers import AutoTokenizer

    own = (folder / "tokenizer_config.json").is_file()
    place = folder if own else base_of(folder)
    with _readable("tokenizer", place):
        return AutoTokenizer.from_pretrained(place, **LOCAL)


def read_config(folder: Path) -> Any:
    """The transformers configuration of the checkpoint in *folder*; of an adapter its base's. Raises BadInput."""
    from transformers import AutoConfig

    place = base_of(folder)
    with _readable("configuration", place):
        return AutoConfig.from_pretrained(place, **LOCAL)


@contextmanager
def _readable(part: str, place: Path) -> Generator[None]:
    """Raises BadInput where the body cannot read the *part* of the checkpoint in *place*."""
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:300]
        raise BadInput(f"the {part} in {str(place)!r} cannot be read: {reason}") from error


def _read_policy(folder: Path) -> tuple[Any, Any]:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    if is_adapter(folder):
        try:
            read = read_checkpoint(base_of(folder), folder, on_cpu=True)
        except ModelUnavailable as error:
            raise BadInput(str(error)) from error
        return read.model, read.tokenizer
    check_checkpoint(folder)
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, **LOCAL)
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **WEIGHTS)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise BadInput(f"{str(folder)!r} cannot be loaded: {' '.join(str(error).split())[:300]}") from error
    declare_turn_end(model, tokenizer)
    return model, tokenizer


def check_checkpoint(folder: Path) -> None:
    """Raises BadInput where *folder* is no checkpoint or adapter with safetensors, without loading its weights."""
    if not (is_adapter(folder) or (folder / "config.json").is_file()):
        raise BadInput(f"{str(folder)!r} is not a checkpoint: it holds no config.json")
    check_weights(folder)


def check_weights(folder: Path) -> None:
    """Raises BadInput where the weights of the model in *folder* are not safetensors."""
    if problem := weights_problem(folder):
        raise BadInput(problem)


def with_adapter(model: Any, lora: Lora | None) -> Any:
    """*model* with a new adapter and frozen weights; *model* itself without *lora*."""
    if lora is None:
        return model
    from peft import get_peft_model

    with reading_old_names():
        return get_peft_model(model, lora_config(lora, model))


def lora_config(lora: Lora, model: Any, *, freeze_vision: bool = True) -> Any:
    """PEFT's configuration of *lora* for *model*: every layer with a name in `lora.targets`. With *freeze_vision*, as
    training on text alone needs it, those of the language model only."""
    from peft import LoraConfig

    return LoraConfig(
        task_type="CAUSAL_LM",
        exclude_modules=encoder_layers(model, lora.targets) if freeze_vision else None,
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets),
    )


@contextmanager
def write_folder_atomically(out: Path) -> Generator[Path]:
    """Writes the folder *out* atomically: the body fills a temporary folder, which is renamed when the body succeeds. A
    leftover of a killed save is overwritten. Raises NotWritten, and leaves nothing, where the disk is full."""
    part = out.with_name(f"{out.name}.part")
    try:
        with writing(out):
            part.mkdir(parents=True, exist_ok=True)
            yield part
            part.rename(out)
    except NotWritten:
        shutil.rmtree(part, ignore_errors=True)
        raise


def save_policy(model: Any, tokenizer: Any, out: Path, start: Path | None = None) -> None:
    """Writes the checkpoint *out* atomically: weights with any adapter merged, tokenizer, generation settings, and the
    image processor of the checkpoint *start*, if it has one."""
    merged = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
    neutral_sampling(merged)
    with write_folder_atomically(out) as part:
        merged.save_pretrained(part)
        tokenizer.save_pretrained(part)
        if start is not None:
            copy_processor(part, start, base_of(start))


def save_adapter(model: Any, beside: Path, start: Path) -> None:
    """Writes the LoRA matrices of *model* beside its checkpoint, atomically, as a PEFT adapter of *start*; does nothing
    for a model without adapters, or whose start is an adapter itself. Call it before the checkpoint is saved, which
    merges them."""
    if not hasattr(model, "peft_config") or is_adapter(start):
        return
    out = beside.with_name(ADAPTER)
    shutil.rmtree(out, ignore_errors=True)  # of a process that was killed before it wrote the model
    for config in model.peft_config.values():
        config.base_model_name_or_path = str(start.resolve())
    with write_folder_atomically(out) as part:
        model.save_pretrained(part, save_embedding_layers=False)
        (part / "README.md").unlink(missing_ok=True)  # a model card to be filled in


def declare_adapter(model: Path) -> None:
    """Copies what the checkpoint *model* declares to the adapter beside it, if there is one."""
    if is_adapter(adapter := model.with_name(ADAPTER)):
        copy_declarations(adapter, model)


def is_adapter(folder: Path) -> bool:
    """Whether *folder* holds an adapter that names its base, as shared-base LoRA writes them."""
    return (folder / ADAPTER_CONFIG).is_file()


def base_of(folder: Path) -> Path:
    """The base checkpoint of an adapter's folder; *folder* itself if it is no adapter. Raises BadInput."""
    if not is_adapter(folder):
        return folder.resolve()
    try:
        named: Any = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"the adapter in {str(folder)!r} names no base: {' '.join(str(error).split())[:200]}") from error
    return Path(str(named)).resolve()


def adapter_weights(folder: Path) -> dict[str, torch.Tensor]:
    """The tensors of the adapter in *folder*. Raises BadInput where they cannot be read."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(folder / ADAPTER_WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise BadInput(f"the adapter in {str(folder)!r} cannot be read: {' '.join(str(error).split())}") from error


def check_adapter(folder: Path, lora: Lora) -> None:
    """Raises BadInput where the adapter in *folder* differs from *lora* in shape or scale. Its tensors do not show the
    scale, and with another one it would be another policy."""
    try:
        config: dict[str, Any] = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        actual = {"rank": config["r"], "alpha": config["lora_alpha"], "targets": sorted(config["target_modules"])}
        rank_stabilised = config.get("use_rslora", False)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"the adapter in {str(folder)!r} cannot be read: {' '.join(str(error).split())}") from error
    expected = {"rank": lora.rank, "alpha": lora.alpha, "targets": sorted(lora.targets)}
    name = next((name for name in actual if actual[name] != expected[name]), None)
    if name is not None:
        raise BadInput(f"the adapter in {str(folder)!r} has {name} {actual[name]}: set compute.lora.{name} to it")
    if rank_stabilised:
        raise BadInput(f"the adapter in {str(folder)!r} is rank-stabilised (use_rslora), and compute.lora is not")


def policy_spec(folder: Path) -> str:
    """The spec of the checkpoint in *folder* for `mira run --policy`."""
    return f"local:{base_of(folder)}+{folder}" if is_adapter(folder) else f"local:{folder}"


def weights_digest(folder: Path) -> str:
    """16 hex digits over a checkpoint's weights, including an adapter's base: equal digests mean equal policies."""
    digest = hashlib.sha256()
    for place in (folder, base_of(folder)) if is_adapter(folder) else (folder,):
        for path in sorted(place.glob("*.safetensors")):
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
    return digest.hexdigest()[:16]


def select_device(compute: Compute) -> torch.device:
    """Returns the device for models, sets PyTorch's number of CPU threads, and prepares a GPU's attention."""
    if compute.cpu or not torch.cuda.is_available():
        torch.set_num_threads(compute.threads)
        return torch.device("cpu")
    avoid_cudnn_attention()
    device: Any = process_state().device
    return device  # the launched process's own; "cuda" would be the first GPU


def neutral_sampling(model: Any) -> None:
    """Removes the base's sampling defaults, such as a repetition penalty. A server and `generate()` would apply them by
    default, but rollouts must sample from the policy itself, and greedy answers must be its own."""
    config = getattr(model, "generation_config", None)
    if config is not None:
        for name in ("temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty"):
            setattr(config, name, None)
        config.do_sample = False
