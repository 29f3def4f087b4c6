"""Loads vision-language models for training, see :mod:`models.local.vision_loading`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from envs.core.errors import BadInput
from models.local.safe_loading import WEIGHTS
from models.local.vision_loading import UNREADABLE, load_processor, loading_error
from training.engine.checkpoints import check_weights


def load_vision_model(folder: Path) -> tuple[Any, Any]:
    """Loads (model in float32, processor that pads on the left) without network access. Raises BadInput in one line,
    also if the processor needs a package that is not installed."""
    from transformers import AutoModelForImageTextToText

    if not (folder / "config.json").is_file():
        raise BadInput(f"{str(folder)!r} is not a checkpoint: it holds no config.json")
    check_weights(folder)
    try:
        model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32, **WEIGHTS)
        processor = load_processor(folder)
    except UNREADABLE as error:
        raise BadInput(
            f"examples have images, and {str(folder)!r} cannot be loaded as a vision model: {loading_error(error)}"
        ) from error
    return model, processor
