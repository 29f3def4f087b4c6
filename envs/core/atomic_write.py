"""Files that are replaced as a whole: whoever reads one, and whatever is killed, finds the old one or the new one."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from envs.core.disk_errors import writing


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A place beside *path* where the body writes a file; it replaces *path* when the body has ended well. Raises
    NotWritten where the disk does not take it."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with writing(path):
            yield part
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, text: str, *, private: bool = False, sync: bool = True) -> None:
    """Replaces *path* by *text*, and makes its folder. *private*: only its owner reads it; *sync*: it survives a power
    cut. Raises NotWritten."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            if sync:
                file.flush()
                os.fsync(file.fileno())
