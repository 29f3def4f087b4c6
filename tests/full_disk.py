"""File systems that are full: a small tmpfs, which fills at the byte, and can be enlarged."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = 4096


class SmallDisk:
    """A file system of its own with room for *size* bytes."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path))
        (path / ".filler").write_bytes(b"x")  # a tmpfs of size 0 has no limit

    def resize(self, size: int) -> None:
        _mount("-o", f"remount,size={size}", str(self.path))

    def used(self) -> int:
        status = os.statvfs(self.path)
        return (status.f_blocks - status.f_bfree) * status.f_frsize

    def leave(self, free: int) -> None:
        """Shrinks it so that *free* bytes, rounded up to a page, can still be written."""
        self.resize(self.used() + -(-free // PAGE) * PAGE)

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.path)], check=False, capture_output=True)


def _mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip())


@contextmanager
def small_disk(size: int) -> Generator[SmallDisk]:
    """Skips the test where no file system can be mounted, which takes root."""
    with tempfile.TemporaryDirectory(prefix="full-") as folder:
        try:
            disk = SmallDisk(Path(folder), size)
        except OSError as error:
            pytest.skip(f"a small tmpfs cannot be mounted here: {error}")
        try:
            yield disk
        finally:
            disk.close()
