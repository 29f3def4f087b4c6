"""Reading a checkpoint folder: transformers weights, a GGUF file, an optional PEFT adapter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from models.base import ModelUnavailable
from models.local_generation import Generator

DEFAULT_CONTEXT = 4_096
"""Tokens, where a checkpoint does not say."""
SMALL_PARAMETERS = 20_000_000
"""Below this a second thread costs more than it brings, and the browser needs it more."""


def load_generator(folder: Path, adapter: Path | None, spec: str) -> tuple[Generator, int]:
    """(generator, context in tokens). Never asks the network. Raises :class:`ModelUnavailable`."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        model, tokenizer = _read(folder, adapter)
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelUnavailable(f"{spec}: cannot be loaded: {type(error).__name__}: {reason}") from error
    _set_threads(model)
    return Generator(model, tokenizer, _ends(model, tokenizer)), _context(model, tokenizer)


def _read(folder: Path, adapter: Path | None) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    on_gpu = torch.cuda.is_available()
    options: dict[str, Any] = {"dtype": "auto" if on_gpu else torch.float32, "local_files_only": True}
    gguf = next(iter(sorted(folder.glob("*.gguf"))), None) if not (folder / "config.json").is_file() else None
    if gguf is not None:
        options["gguf_file"] = gguf.name
    tokenizer = AutoTokenizer.from_pretrained(
        folder, local_files_only=True, **({"gguf_file": gguf.name} if gguf is not None else {})
    )
    model: Any = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa", **options)
    if adapter is not None:
        from peft import PeftModel  # pyright: ignore[reportMissingImports]

        model = PeftModel.from_pretrained(model, adapter, local_files_only=True).merge_and_unload()
    return model.to("cuda" if on_gpu else "cpu").eval(), tokenizer


def _set_threads(model: Any) -> None:
    """One thread for a tiny model, else all cores but never more than eight."""
    import torch

    if model.device.type != "cpu":
        return
    parameters = sum(parameter.numel() for parameter in model.parameters())
    torch.set_num_threads(1 if parameters < SMALL_PARAMETERS else min(8, os.cpu_count() or 1))


def _ends(model: Any, tokenizer: Any) -> frozenset[int]:
    declared = getattr(model.generation_config, "eos_token_id", None)
    ends = declared if isinstance(declared, list) else [declared]
    return frozenset(token for token in [*ends, tokenizer.eos_token_id] if token is not None)


def _context(model: Any, tokenizer: Any) -> int:
    """The smaller of what model and tokenizer declare; transformers writes a huge number for "unknown"."""
    declared = [getattr(model.config, "max_position_embeddings", None), tokenizer.model_max_length]
    known = [int(length) for length in declared if length and length < 10_000_000]
    return min(known, default=DEFAULT_CONTEXT)
