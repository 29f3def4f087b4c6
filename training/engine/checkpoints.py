"""Checkpoints of policies: read for training, written so that what serves them takes them as they are."""

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
from accelerate import PartialState

from envs.core.disk_errors import writing
from envs.core.errors import BadInput, NotWritten
from models.base import ModelUnavailable
from models.local.loading import read_checkpoint, reading_old_names
from models.local.safe_loading import ADAPTER_CONFIG, LOCAL, WEIGHTS, weights_problem
from training.engine.language_model import encoder_layers, freeze_encoders
from training.engine.packed_model import accept_packed
from training.engine.settings import Compute, Lora

ADAPTER_WEIGHTS = "adapter_model.safetensors"


def load_policy(folder: Path, *, padded: bool = False) -> tuple[Any, Any]:
    """(causal model in float32, tokenizer); an adapter's comes merged into its base.

    The model takes packs, see :func:`accept_packed`, or batches with an attention mask where they are *padded*. Of a
    multimodal one only the language model has gradients. Never asks the network. Raises BadInput in one line.
    """
    model, tokenizer = _read_policy(folder)
    freeze_encoders(model)
    if not padded:
        accept_packed(model)
    return model, tokenizer


def load_tokenizer(folder: Path) -> Any:
    """What `load_policy` gives beside the model; of an adapter its own, where it brings one. Raises BadInput."""
    from transformers import AutoTokenizer

    brought = (folder / "tokenizer_config.json").is_file()
    place = folder if brought else base_of(folder)
    with _readable("tokenizer", place):
        return AutoTokenizer.from_pretrained(place, **LOCAL)


def read_config(folder: Path) -> Any:
    """The transformers configuration of the checkpoint in *folder*, of an adapter its base's. Raises BadInput."""
    from transformers import AutoConfig

    place = base_of(folder)
    with _readable("configuration", place):
        return AutoConfig.from_pretrained(place, **LOCAL)


@contextmanager
def _readable(part: str, place: Path) -> Generator[None]:
    """Raises BadInput where the body cannot read what the checkpoint in *place* has as its *part*."""
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        told = " ".join(str(error).split())[:300]
        raise BadInput(f"the {part} in {str(place)!r} cannot be read: {told}") from error


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
    if not (folder / "config.json").is_file():
        raise BadInput(f"{str(folder)!r} is no checkpoint: it holds no config.json")
    check_weights(folder)
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, **LOCAL)
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="sdpa", **WEIGHTS
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise BadInput(f"{str(folder)!r} cannot be loaded: {' '.join(str(error).split())[:300]}") from error
    return model, tokenizer


def check_weights(folder: Path) -> None:
    """Raises BadInput where the weights of the model in *folder* are not safetensors."""
    if problem := weights_problem(folder):
        raise BadInput(problem)


def with_adapter(model: Any, lora: Lora | None) -> Any:
    """*model* with a fresh adapter, its own weights frozen; *model* itself without *lora*."""
    if lora is None:
        return model
    from peft import get_peft_model

    with reading_old_names():
        return get_peft_model(model, lora_config(lora, model))


def lora_config(lora: Lora, model: Any = None) -> Any:
    """PEFT's configuration of *lora*; with *model*, a multimodal one, for its language model alone."""
    from peft import LoraConfig

    return LoraConfig(
        task_type="CAUSAL_LM",
        exclude_modules=None if model is None else encoder_layers(model, lora.targets),
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets),
    )


@contextmanager
def write_folder_atomically(out: Path) -> Generator[Path]:
    """A folder for the body to fill; it gets the name *out* when the body has ended well. What a killed save left is
    written over. Raises NotWritten, and leaves nothing, where the disk does not take it."""
    part = out.with_name(f"{out.name}.part")
    try:
        with writing(out):
            part.mkdir(parents=True, exist_ok=True)
            yield part
            part.rename(out)
    except NotWritten:
        shutil.rmtree(part, ignore_errors=True)
        raise


PROCESSOR_FILES = (
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
    "chat_template.json",
)
"""How a multimodal checkpoint encodes pictures: transformers and vLLM read such a model with them only."""


def save_policy(model: Any, tokenizer: Any, out: Path, start: Path | None = None) -> None:
    """Writes *out*: weights with any adapter merged, tokenizer, generation settings, and what the checkpoint *start*
    has of `PROCESSOR_FILES`. Replaces nothing half-written."""
    merged = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
    neutral_sampling(merged)
    with write_folder_atomically(out) as part:
        merged.save_pretrained(part)
        tokenizer.save_pretrained(part)
        for name in PROCESSOR_FILES:
            source = None if start is None else base_of(start) / name
            if source is not None and source.is_file():
                shutil.copyfile(source, part / name)


def is_adapter(folder: Path) -> bool:
    """Whether *folder* holds an adapter beside a base, as the memory-lean mode leaves them."""
    return (folder / ADAPTER_CONFIG).is_file()


def base_of(folder: Path) -> Path:
    """The checkpoint that an adapter's folder names as its base; *folder* itself where it is none. Raises BadInput."""
    if not is_adapter(folder):
        return folder.resolve()
    try:
        named: Any = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))["base_model_name_or_path"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"the adapter in {str(folder)!r} names no base: {' '.join(str(error).split())[:200]}") from error
    return Path(str(named)).resolve()


def adapter_weights(folder: Path) -> dict[str, torch.Tensor]:
    """Raises BadInput where *folder* holds none that can be read."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(folder / ADAPTER_WEIGHTS)
    except (OSError, SafetensorError) as error:
        raise BadInput(f"the adapter in {str(folder)!r} cannot be read: {' '.join(str(error).split())}") from error


def check_adapter(folder: Path, lora: Lora) -> None:
    """Raises BadInput where the adapter in *folder* is of another shape than *lora*, or adds what it has learned by
    another factor, which its tensors do not show: it would be another policy."""
    try:
        told: dict[str, Any] = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
        has = {"rank": told["r"], "alpha": told["lora_alpha"], "targets": sorted(told["target_modules"])}
        rank_stabilised = told.get("use_rslora", False)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"the adapter in {str(folder)!r} cannot be read: {' '.join(str(error).split())}") from error
    asked = {"rank": lora.rank, "alpha": lora.alpha, "targets": sorted(lora.targets)}
    odd = next((name for name in has if has[name] != asked[name]), None)
    if odd is not None:
        raise BadInput(f"the adapter in {str(folder)!r} has {odd} {has[odd]}: set compute.lora.{odd} to it")
    if rank_stabilised:
        raise BadInput(f"the adapter in {str(folder)!r} is rank-stabilised (use_rslora), and compute.lora is not")


def policy_spec(folder: Path) -> str:
    """How `mira run --policy` is told of the checkpoint in *folder*."""
    return f"local:{base_of(folder)}+{folder}" if is_adapter(folder) else f"local:{folder}"


def weights_digest(folder: Path) -> str:
    """16 hex digits over a checkpoint's weights, those of an adapter's base included: equal digests, equal policies."""
    found = hashlib.sha256()
    for place in (folder, base_of(folder)) if is_adapter(folder) else (folder,):
        for path in sorted(place.glob("*.safetensors")):
            found.update(path.name.encode())
            with path.open("rb") as file:
                while chunk := file.read(1 << 20):
                    found.update(chunk)
    return found.hexdigest()[:16]


def select_device(compute: Compute) -> torch.device:
    """Sets PyTorch's threads and returns where models go."""
    if compute.cpu or not torch.cuda.is_available():
        torch.set_num_threads(compute.threads)
        return torch.device("cpu")
    own: Any = PartialState().device
    return own  # of a launched process its own, where "cuda" would be the first one's


def neutral_sampling(model: Any) -> None:
    """Drops the sampling defaults that a base brought (temperature, top_k, top_p): a server would apply them to whoever
    does not say otherwise, and what is played, and learned from, is the policy itself."""
    config = getattr(model, "generation_config", None)
    if config is not None:
        for name in ("temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty"):
            setattr(config, name, None)
        config.do_sample = False
