"""`local:DIR[+ADAPTER]`: a transformers checkpoint in a folder, with a PEFT adapter folder; or `local:FILE.gguf`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from models.base import ChatModel, ModelStatus, ModelUnavailable
from models.optional import LOCAL_PACKAGES, install_command, missing_modules
from models.provider import ModelOptions, ModelSpec, Provider, expanded_path
from models.thinking import Thinking

FORM = "local:DIR[+ADAPTER]"


@dataclass(frozen=True, slots=True)
class LocalSpec(ModelSpec):
    folder: Path
    """A checkpoint's folder, or a GGUF file."""
    adapter: Path | None = None

    def __str__(self) -> str:
        return f"local:{self.folder}" + (f"+{self.adapter}" if self.adapter else "")

    def make(self, options: ModelOptions) -> ChatModel:
        from models.local.gguf_copies import gguf_file

        folder, adapter = self.folder, self.adapter
        if adapter is not None and not adapter.is_dir():
            raise ModelUnavailable(f"{self}: no folder {str(adapter)!r}")
        if not folder.exists():
            raise ModelUnavailable(f"{self}: no folder {str(folder)!r}")
        if not (folder / "config.json").is_file() and gguf_file(folder) is None:
            reason = "is a file, and no .gguf" if folder.is_file() else "holds no config.json"
            raise ModelUnavailable(f"{self}: {str(folder)!r} {reason}, so it is not a transformers checkpoint")
        from models.providers.local_chat import LocalModel

        return LocalModel.load(folder, adapter=adapter, spec=str(self))

    def checkpoint_folders(self) -> tuple[Path, ...]:
        return (self.adapter, self.folder) if self.adapter else (self.folder,)

    @property
    def constrained(self) -> bool:
        return True

    def ignores_thinking(self, thinking: Thinking) -> bool:
        return True

    def price_known(self, options: ModelOptions) -> bool:
        return True


def _parse(rest: str) -> LocalSpec:
    """The part after the last `+` is the adapter, unless the whole text is an existing folder or file."""
    whole = expanded_path(rest)
    folder, plus, adapter = rest.rpartition("+")
    if not plus or not folder or not adapter or whole.exists():
        return LocalSpec(whole)
    return LocalSpec(expanded_path(folder), expanded_path(adapter))


def _status(environ: Mapping[str, str]) -> ModelStatus:
    missing = missing_modules(*LOCAL_PACKAGES)
    detail = "any transformers checkpoint folder, or a GGUF file"
    if missing:
        detail = f"needs {', '.join(missing)}: {install_command('local')}"
    examples = ("local:checkpoints/my-policy", "local:qwen2.5-0.5b-q4_k_m.gguf")
    return ModelStatus(FORM, usable=not missing, detail=detail, examples=examples)


PROVIDER = Provider(FORM, _parse, _status)
