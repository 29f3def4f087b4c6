"""Which files of the upload folder may be uploaded, and their names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from envs.core.record import storable

SEARCHED = 2_000
"""Entries of the folder that are looked at for a listing."""


def allowed_upload(folder: Path | None, path: str) -> Path | None:
    """The file that *path* names below *folder*, links followed; None if it is elsewhere or no file."""
    if folder is None or "\0" in path:
        return None
    try:
        root = folder.resolve(strict=True)
        file = (root / path).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return file if file.is_relative_to(root) and file.is_file() else None


def uploadable(folder: Path | None) -> tuple[str, ...]:
    """Sorted paths, relative to *folder*, of the files in it that may be uploaded. Hidden ones, names that cannot be
    stored, and what lies beyond the first SEARCHED files are not listed."""
    if folder is None:
        return ()
    return tuple(sorted(path for path in _paths(folder) if allowed_upload(folder, path) is not None))


def _paths(folder: Path) -> Iterator[str]:
    seen = 0
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            seen += 1
            if seen > SEARCHED:
                return
            path = (Path(where) / name).relative_to(folder).as_posix()
            if not name.startswith(".") and storable(path) == path:
                yield path
