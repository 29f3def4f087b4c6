"""Configurations of `mira train mira` that ship with the package: `-c NAME`."""

from __future__ import annotations

from pathlib import Path

from envs.core.errors import BadInput

HERE = Path(__file__).parent
IN_THE_REPOSITORY = Path("training/configs")
"""How documents name the folder: it is read from the package where no such file is in the working directory."""


def config_names() -> tuple[str, ...]:
    """By name, such as `smoke`."""
    return tuple(sorted(path.stem for path in HERE.glob("*.toml")))


def config_file(word: str) -> Path:
    """The file that *word* names: a path, else the name of a configuration that ships, with or without `.toml`. Raises
    BadInput, which lists the names."""
    given = Path(word)
    if given.is_file():
        return given
    bare = given.parent in (Path(), IN_THE_REPOSITORY)
    if bare and given.name.removesuffix(".toml") in config_names():
        return HERE / f"{given.name.removesuffix('.toml')}.toml"
    raise BadInput(f"-c {word!r} does not exist: give a file, or one of {', '.join(config_names())}")
