"""`embedded`: the small model that this package ships."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from models.base import ChatModel, ModelStatus
from models.embedded import embedded_dir
from models.provider import ModelOptions, ModelSpec, Provider
from models.thinking import Thinking


@dataclass(frozen=True, slots=True)
class EmbeddedSpec(ModelSpec):
    def __str__(self) -> str:
        return "embedded"

    def make(self, options: ModelOptions) -> ChatModel:
        from models.providers.local_chat import embedded

        return embedded()

    def checkpoint_folders(self) -> tuple[Path, ...]:
        return (embedded_dir(),)

    def takes_grammars(self, options: ModelOptions) -> bool:
        return False

    def ignores_thinking(self, thinking: Thinking) -> bool:
        return True

    def price_known(self, options: ModelOptions) -> bool:
        return True


def _status(environ: Mapping[str, str]) -> ModelStatus:
    if not (embedded_dir() / "config.json").is_file():
        detail = f"no checkpoint in {str(embedded_dir())!r}: make it with python -m training.embedded"
        return ModelStatus("embedded", usable=False, detail=detail, examples=("embedded",))
    detail = "the small model that ships with this package"
    return ModelStatus("embedded", usable=True, detail=detail, examples=("embedded",))


PROVIDER = Provider("embedded", lambda _: EmbeddedSpec(), _status)
