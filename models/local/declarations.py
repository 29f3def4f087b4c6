"""How a checkpoint was trained, declared in `mira.json` beside its weights, so that it is played in the same way.

A model of a few million parameters that was trained on short prompts cannot use the long prompts of a large model. Only
this file distinguishes the two.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from models.specs import checkpoint_folders

PromptStyle = Literal["compact", "full"]
RoleStyle = Literal["compact", "short", "full"]
"""Prompts of planner and AutoRater: for models that were trained on them, for small general models, for large ones."""
Thoughts = Literal["tags", "asked"]
"""How a policy was trained to think: `tags`: answers begin with a thought in `<think>` tags, which may be empty;
`asked`: so they do, and prompts asked for it (:mod:`models.prompting.thought_request`)."""
ShownMilestones = Literal["shown", "hidden", "both"]
"""Whether the prompts that a policy was trained on showed milestones: all of them, none, or some."""

DECLARATION: Final = "mira.json"
_KEY: Final = "prompt_style"
_PROFILE: Final = "profile"
_THOUGHTS: Final = "thoughts"
_REASONS: Final = "reasons"
_MILESTONES: Final = "milestones"
_PRECISION: Final = "precision"
_BFLOAT16: Final = "bfloat16"
_NONE: Final = "none"


def declare_style(folder: Path, style: PromptStyle | None, profile: str = "") -> None:
    """Declares that the checkpoint in *folder* was trained on prompts of *style*, and of which *profile* if that is not
    the only one of the style; does nothing for None."""
    if style is not None:
        declare(folder, _KEY, style)
        if profile:
            declare(folder, _PROFILE, profile)


def declare(folder: Path, key: str, value: str) -> None:
    """Sets *key* in the declaration of *folder*, and keeps the others."""
    unfinished = folder / f"{DECLARATION}.part"
    unfinished.write_text(json.dumps({**declarations(folder), key: value}) + "\n", encoding="utf-8")
    unfinished.replace(folder / DECLARATION)


def declarations(folder: Path) -> dict[str, Any]:
    """What the checkpoint in *folder* declares by key; empty without a readable file."""
    try:
        values: Any = json.loads((folder / DECLARATION).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", values) if isinstance(values, dict) else {}


def declared_style(*folders: Path) -> PromptStyle | None:
    """The style that the first of *folders* with a declaration declares; None without one."""
    return declaration(*folders)[0]


def declaration(*folders: Path) -> tuple[PromptStyle | None, str]:
    """The style and the profile that the first of *folders* with a declaration declares; an empty profile is the usual
    one of the style."""
    for folder in folders:
        values = declarations(folder)
        style = values.get(_KEY)
        if style in get_args(PromptStyle):
            return cast("PromptStyle", style), str(values.get(_PROFILE, ""))
    return None, ""


def style_of_spec(spec: str) -> PromptStyle | None:
    """The declared style of a model spec's checkpoint, or of its adapter first; None without a declaration."""
    return declaration_of_spec(spec)[0]


def declaration_of_spec(spec: str) -> tuple[PromptStyle | None, str]:
    """The same with the declared profile."""
    return declaration(*checkpoint_folders(spec))


def declare_no_reasons(folder: Path) -> None:
    """Declares that the checkpoint in *folder* was trained on answers without a reason before the action."""
    declare(folder, _REASONS, _NONE)


def answers_without_reasons(spec: str) -> bool:
    """Whether the checkpoint of a model spec, or its adapter, declares answers without reasons."""
    return declares_no_reasons(*checkpoint_folders(spec))


def declares_no_reasons(*folders: Path) -> bool:
    """Whether one of *folders* declares answers without reasons."""
    return any(declarations(folder).get(_REASONS) == _NONE for folder in folders)


def declare_milestones(folder: Path, milestones: ShownMilestones) -> None:
    """Declares whether the prompts that the checkpoint in *folder* was trained on showed milestones."""
    declare(folder, _MILESTONES, milestones)


def declared_milestones(*folders: Path) -> ShownMilestones | None:
    """What the first of *folders* that declares it says of milestones in its prompts; None without a declaration."""
    values = (declarations(folder).get(_MILESTONES) for folder in folders)
    return next((value for value in values if value in get_args(ShownMilestones)), None)


def declare_precision(folder: Path, *, bf16: bool) -> None:
    """Declares the precision of the matrix products in which the checkpoint in *folder* was trained: with *bf16*
    bfloat16, else float32."""
    declare(folder, _PRECISION, _BFLOAT16 if bf16 else "float32")


def is_trained_in_bfloat16(*folders: Path) -> bool:
    """Whether the first of *folders* that declares a precision was trained with products in bfloat16."""
    declared = (declarations(folder).get(_PRECISION) for folder in folders)
    return next((value == _BFLOAT16 for value in declared if value is not None), False)


def declare_thoughts(folder: Path, thoughts: Thoughts | None) -> None:
    """Declares how the checkpoint in *folder* was trained to think; does nothing for None."""
    if thoughts is not None:
        declare(folder, _THOUGHTS, thoughts)


def declare_no_thoughts(folder: Path) -> None:
    """Declares that the checkpoint in *folder* was trained on answers without thoughts, whatever its base declares."""
    declare(folder, _THOUGHTS, _NONE)


def declared_thoughts(*folders: Path) -> Thoughts | None:
    """How the first of *folders* with a declaration thinks; None without one, or where it declares no thoughts."""
    values = (declarations(folder).get(_THOUGHTS) for folder in folders)
    first = next((value for value in values if value in (*get_args(Thoughts), _NONE)), None)
    return None if first in (None, _NONE) else cast("Thoughts", first)


def thoughts_of_spec(spec: str) -> Thoughts | None:
    """How the checkpoint of a model spec, or its adapter first, declares that it thinks."""
    return declared_thoughts(*checkpoint_folders(spec))


def copy_declarations(folder: Path, *sources: Path) -> None:
    """Copies what the checkpoints in *sources*, such as an adapter and its base, declare to *folder*; the first that
    declares a key counts. The profile is that of the same checkpoint as the style."""
    merged: dict[str, Any] = {}
    for source in reversed(sources):
        values = declarations(source)
        if _KEY in values:
            merged.pop(_PROFILE, None)
        merged |= values
    for key, value in merged.items():
        declare(folder, key, value)
