"""Configurations of `mira train mira` that ship with the package: `-c NAME`."""

from __future__ import annotations

from pathlib import Path

from envs.core.errors import BadInput

HERE = Path(__file__).parent
IN_THE_REPOSITORY = Path("training/configs")
"""Path of the folder in documents. It is read from the package if the file is not in the working directory."""


def config_names() -> tuple[str, ...]:
    """Returns the names of the shipped configurations, such as `smoke`."""
    return tuple(sorted(file.stem for file in HERE.glob("*.toml")))


def config_file(word: str) -> Path:
    """Returns the file that *word* names: a path, or the name of a shipped configuration, with or without `.toml`.
    Raises BadInput, which lists the names."""
    path = Path(word)
    if path.is_file():
        return path
    bare = path.parent in (Path(), IN_THE_REPOSITORY)
    if bare and path.name.removesuffix(".toml") in config_names():
        return HERE / f"{path.name.removesuffix('.toml')}.toml"
    raise BadInput(f"-c {word!r} does not exist: give a file, or one of {', '.join(config_names())}")
