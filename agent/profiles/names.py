"""The names of the prompt profiles: their files in this folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

AUTO: Final = "auto"
FOLDER: Final = Path(__file__).parent
OF_STYLE: Final = {"full": "large", "compact": "compact"}
"""The profile of models that were trained on prompts of a style."""


@cache
def profile_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def checked_name(name: str) -> str:
    """Returns *name*. Raises ValueError, which lists the profiles, if it is neither one of them nor `auto`."""
    if name not in (AUTO, *profile_names()):
        raise ValueError(f"unknown prompt profile: use one of {', '.join((AUTO, *profile_names()))}")
    return name


def with_profile_for_style(values: Mapping[str, Any]) -> dict[str, Any]:
    """*values* with `profile` in place of `prompt_style`, its name in earlier versions. A value of both that is not
    `auto` counts; of two, that of `profile`."""
    current = dict(values)
    style = current.pop("prompt_style", AUTO)
    if current.get("profile", AUTO) == AUTO and style != AUTO:
        current["profile"] = next((profile for known, profile in OF_STYLE.items() if known == style), style)
    return current
