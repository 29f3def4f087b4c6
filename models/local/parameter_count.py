"""Counts the parameters of a checkpoint on this machine, from the headers of its files: no weight is read."""

from __future__ import annotations

import json
import math
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from models.base import ModelUnavailable
from models.local.gguf_copies import gguf_file
from models.local.gguf_header import read_header

_WHOLE: Final = "model.safetensors"
_INDEX: Final = "model.safetensors.index.json"
_MOST_HEADER_BYTES: Final = 100_000_000
"""The limit of the format."""


def count_parameters(place: Path) -> int | None:
    """Number of parameters of the checkpoint in the folder *place*, or of the GGUF file *place* or in it. None where it
    is not known: nothing there, damaged, split GGUF files, or quantized weights in safetensors, which are packed."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, struct.error, ModelUnavailable):
        file = gguf_file(place)
        if file is not None:
            header = read_header(file)
            return header.elements if header.parts <= 1 else None
        if "quantization_config" in _json(place / "config.json"):
            return None
        files = [_WHOLE] if (place / _WHOLE).is_file() else {*_json(place / _INDEX)["weight_map"].values()}
        return sum(_elements(place / name) for name in files)
    return None


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _elements(path: Path) -> int:
    """Number of elements of all tensors in a safetensors file."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        if length > _MOST_HEADER_BYTES:
            raise ValueError(f"{path.name} is no safetensors file")
        header: dict[str, Any] = json.loads(file.read(length))
    return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
