"""The checkpoint that a training starts from. This module does not import PyTorch."""

from __future__ import annotations

from pathlib import Path

from envs.core.errors import BadInput
from models.base import ModelUnavailable
from models.embedded import embedded_dir
from models.local.gguf_copies import converted, gguf_file
from models.provider import expanded_path


def start_folder(start: str) -> Path:
    """The checkpoint that *start* names: a folder, a GGUF file, which is converted once, or `embedded`. Raises
    BadInput."""
    if start == "embedded":
        return embedded_dir()
    try:
        file = gguf_file(place := expanded_path(start))
        return place if file is None else converted(file, start)
    except ModelUnavailable as error:
        raise BadInput(str(error)) from error
