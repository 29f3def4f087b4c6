"""The folders on this machine of the checkpoint that a model spec names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from models.base import ModelUnavailable
from models.embedded import embedded_dir
from models.providers.embedded import EmbeddedSpec
from models.providers.local import LocalSpec
from models.providers.openai import OpenAISpec
from models.providers.vllm import VllmSpec
from models.specs import parse_spec

CONFIG: Final = "config.json"


def checkpoint_folders(spec: str) -> tuple[Path, ...]:
    """The folders that may hold a declaration: the adapter's, then the checkpoint's. Empty for models of elsewhere.

    A server's model counts if its name is the folder of a checkpoint: the name that `vllm serve DIR` and `transformers
    serve DIR` give it.
    """
    try:
        parsed = parse_spec(spec)
    except ModelUnavailable:
        return ()
    match parsed:
        case EmbeddedSpec():
            return (embedded_dir(),)
        case LocalSpec(folder, adapter):
            return (adapter, folder) if adapter else (folder,)
        case VllmSpec() | OpenAISpec():
            folder = served_folder(parsed.model)
            return (folder,) if folder else ()
        case _:
            return ()


def served_folder(name: str) -> Path | None:
    """The folder of a checkpoint that the name of a server's model is; None for other names."""
    folder = Path(name)
    return folder if (folder / CONFIG).is_file() else None
