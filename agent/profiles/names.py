"""The names of the prompt profiles: their files in this folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

AUTO: Final = "auto"
FOLDER: Final = Path(__file__).parent


@cache
def profile_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def checked_name(name: str) -> str:
    """Returns *name*. Raises ValueError, which lists the profiles, if it is neither one of them nor `auto`."""
    if name not in (AUTO, *profile_names()):
        raise ValueError(f"unknown prompt profile: use one of {', '.join((AUTO, *profile_names()))}")
    return name
