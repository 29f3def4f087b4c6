"""Checks and lists the files that may be uploaded; reports the file choosers that no upload opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from playwright.async_api import FileChooser

from envs.core.record import storable

SEARCHED = 2_000
"""Maximum number of files that are examined for a listing."""

CHOOSER_OPENED = "it opened a file chooser, which was left empty: upload a file to this control instead"


class FileChoosers:
    """Leaves the file choosers empty that pages open. While it listens, Playwright intercepts choosers; listening from
    the click on would be too late."""

    def __init__(self) -> None:
        self._opened = 0

    def arrived(self, _: FileChooser) -> None:
        self._opened += 1

    def drain(self) -> tuple[str, ...]:
        """The report of choosers that opened since the last call; empty if there were none."""
        opened, self._opened = self._opened, 0
        return (CHOOSER_OPENED,) if opened else ()


def allowed_upload(folder: Path | None, path: str) -> Path | None:
    """Returns the file *path* inside *folder* with links resolved; None if it is outside or not a file."""
    if folder is None or "\0" in path:
        return None
    try:
        root = folder.resolve(strict=True)
        file = (root / path).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return file if file.is_relative_to(root) and file.is_file() else None


def uploadable(folder: Path | None) -> tuple[str, ...]:
    """Returns the sorted paths, relative to *folder*, of the files that may be uploaded. Hidden files, unstorable names
    and files beyond the first SEARCHED ones are omitted."""
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
