"""The option `-o/--out` of all commands. It is checked while options are parsed: a wrong place ends the command before
its work, not after it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import typer

from envs.core.errors import BadInput


def output_file(description: str) -> Any:
    """The option `-o/--out` of a command that writes one file, and the folders above it."""
    return typer.Option("--out", "-o", help=description, callback=_checked_file)


def output_folder(description: str) -> Any:
    """The option `-o/--out` of a command that writes files into a folder, which need not exist."""
    return typer.Option("--out", "-o", help=description, callback=_checked_folder)


def _checked_file(out: Path | None) -> Path | None:
    if out is not None and out.is_dir():
        raise BadInput(f"--out {str(out)!r} is a folder: name a file")
    if out is not None and out.exists() and not out.is_file():
        raise BadInput(f"--out {str(out)!r} is a device or a pipe, which a file would replace: name a file")
    return _below_a_folder(out)


def _checked_folder(out: Path | None) -> Path | None:
    if out is not None and out.exists() and not out.is_dir():
        raise BadInput(f"--out {str(out)!r} is a file: name a folder")
    return _below_a_folder(out)


def _below_a_folder(out: Path | None) -> Path | None:
    if out is None:
        return None
    above = next(folder for folder in out.absolute().parents if folder.exists())
    if not above.is_dir():
        raise BadInput(f"--out {str(out)!r} cannot be written: {str(above)!r} is a file, not a folder")
    place = out if out.is_dir() else above
    if not os.access(place, os.W_OK | os.X_OK):
        raise BadInput(f"--out {str(out)!r} cannot be written: you may not write to {str(place)!r}")
    return out
