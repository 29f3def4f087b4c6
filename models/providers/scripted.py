"""`scripted:FILE`: answers from a file, for tests (:mod:`models.providers.scripted_model`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from models.base import ChatModel, ModelStatus
from models.provider import ModelOptions, ModelSpec, Provider, expanded_path

FORM = "scripted:FILE"


@dataclass(frozen=True, slots=True)
class ScriptedSpec(ModelSpec):
    file: Path

    def __str__(self) -> str:
        return f"scripted:{self.file}"

    def make(self, options: ModelOptions) -> ChatModel:
        from models.providers.scripted_model import ScriptedModel

        return ScriptedModel.from_file(self.file, spec=str(self))

    def price_known(self, options: ModelOptions) -> bool:
        return True


def _status(environ: Mapping[str, str]) -> ModelStatus:
    detail = "answers from a file, for tests: a JSON list, or one JSON value a line in a .jsonl file"
    return ModelStatus(FORM, usable=True, detail=detail, examples=("scripted:a.jsonl",))


PROVIDER = Provider(FORM, lambda rest: ScriptedSpec(expanded_path(rest)), _status)
