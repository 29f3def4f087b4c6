"""Which prompts a checkpoint has learned to answer: `mira.json` beside its weights, so that nobody has to say it again.

A model of a few million parameters that was trained on short prompts cannot use the long ones of a large model, and
nothing but this file tells one checkpoint from the other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from models.base import ModelUnavailable
from models.embedded import embedded_dir
from models.provider_specs.embedded import EmbeddedSpec
from models.provider_specs.local import LocalSpec
from models.specs import parse_spec

PromptStyle = Literal["compact", "full"]

DECLARATION: Final = "mira.json"
_KEY: Final = "prompt_style"


def declare_style(folder: Path, style: PromptStyle | None) -> None:
    """Writes that the checkpoint in *folder* was trained on prompts of *style*; nothing for None."""
    if style is not None:
        unfinished = folder / f"{DECLARATION}.part"
        unfinished.write_text(json.dumps({_KEY: style}) + "\n", encoding="utf-8")
        unfinished.replace(folder / DECLARATION)


def declared_style(*folders: Path) -> PromptStyle | None:
    """What the first of *folders* that declares anything says; None where none does."""
    for folder in folders:
        try:
            said: Any = json.loads((folder / DECLARATION).read_text(encoding="utf-8"))[_KEY]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if said in get_args(PromptStyle):
            return cast("PromptStyle", said)
    return None


def style_of_spec(spec: str) -> PromptStyle | None:
    """Of a model spec: what its checkpoint declares, an adapter's before its base's; None where there is none."""
    try:
        match parse_spec(spec):
            case EmbeddedSpec():
                return declared_style(embedded_dir())
            case LocalSpec(folder, adapter):
                return declared_style(*([adapter] if adapter else []), folder)
            case _:
                return None
    except ModelUnavailable:
        return None
