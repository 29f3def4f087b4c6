"""The prompt style of a checkpoint, declared in `mira.json` beside its weights.

A model of a few million parameters that was trained on short prompts cannot use the long prompts of a large model. Only
this file distinguishes the two.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from models.base import ModelUnavailable
from models.embedded import embedded_dir
from models.providers.embedded import EmbeddedSpec
from models.providers.local import LocalSpec
from models.specs import parse_spec

PromptStyle = Literal["compact", "full"]

DECLARATION: Final = "mira.json"
_KEY: Final = "prompt_style"
_PROFILE: Final = "profile"


def declare_style(folder: Path, style: PromptStyle | None, profile: str = "") -> None:
    """Declares that the checkpoint in *folder* was trained on prompts of *style*, and of which *profile* if that is not
    the only one of the style; does nothing for None."""
    if style is not None:
        values = {_KEY: style, **({_PROFILE: profile} if profile else {})}
        unfinished = folder / f"{DECLARATION}.part"
        unfinished.write_text(json.dumps(values) + "\n", encoding="utf-8")
        unfinished.replace(folder / DECLARATION)


def declared_style(*folders: Path) -> PromptStyle | None:
    """The style that the first of *folders* with a declaration declares; None without one."""
    return declaration(*folders)[0]


def declaration(*folders: Path) -> tuple[PromptStyle | None, str]:
    """The style and the profile that the first of *folders* with a declaration declares; an empty profile is the usual
    one of the style."""
    for folder in folders:
        try:
            values: Any = json.loads((folder / DECLARATION).read_text(encoding="utf-8"))
            style, profile = values[_KEY], values.get(_PROFILE, "")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if style in get_args(PromptStyle):
            return cast("PromptStyle", style), str(profile)
    return None, ""


def style_of_spec(spec: str) -> PromptStyle | None:
    """The declared style of a model spec's checkpoint, or of its adapter first; None without a declaration."""
    return declaration_of_spec(spec)[0]


def declaration_of_spec(spec: str) -> tuple[PromptStyle | None, str]:
    """The same with the declared profile."""
    try:
        match parse_spec(spec):
            case EmbeddedSpec():
                return declaration(embedded_dir())
            case LocalSpec(folder, adapter):
                return declaration(*([adapter] if adapter else []), folder)
            case _:
                return None, ""
    except ModelUnavailable:
        return None, ""
