"""Reads foreign files: only regular files inside the given folder and of bounded size.

A foreign log folder may contain links to files of this machine, endless pipes, and files larger than memory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from envs.core.errors import BadInput

LARGEST_BYTES: Final = 512 * 1024 * 1024
"""Limit for one file, as stored."""
LARGEST_PICTURE_BYTES: Final = 32 * 1024 * 1024


def read_regular(path: Path, max_bytes: int = LARGEST_BYTES) -> bytes:
    """The bytes of *path*. Raises BadInput for a link, another kind of file, or a file over *max_bytes*, and
    FileNotFoundError if it does not exist."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = "it is a link, and links are not followed" if path.is_symlink() else error.strerror
        raise BadInput(f"{path}: cannot be read: {reason}") from None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise BadInput(f"{path}: cannot be read: it is not a regular file")
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise BadInput(f"{path}: larger than {max_bytes // 2**20} MiB")
    return data


def read_text(path: Path) -> str:
    """The file decoded as UTF-8, invalid bytes replaced. Raises the errors of :func:`read_regular`."""
    return read_regular(path).decode("utf-8", "replace")


def inside(folder: Path, path: Path) -> Path:
    """Returns *path* if it lies in *folder* after resolving links. Raises BadInput otherwise."""
    if not path.parent.resolve().is_relative_to(folder.resolve()):
        raise BadInput(f"{path}: its folder is a link that leads out of {folder}, and links are not followed")
    return path
