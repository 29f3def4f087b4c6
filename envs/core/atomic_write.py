"""Writes files atomically: a reader sees the old file or the new one, even if the writer is killed."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from envs.core.disk_errors import writing


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Yields a temporary path beside *path*, which replaces *path* if the body succeeds. Raises NotWritten if the disk
    refuses the write."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with writing(path):
            yield part
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, text: str, *, private: bool = False, sync: bool = True) -> None:
    """Writes *text* to *path* atomically and creates its folder. *private*: only the owner can read the file. *sync*:
    the file survives a power failure. Raises NotWritten."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            if sync:
                file.flush()
                os.fsync(file.fileno())
