"""Opens foreign files: only regular ones, inside the folder that was named, and of bounded size.

A log folder that somebody else made may hold links to files of this machine, pipes that never end, and files that are
larger than memory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from envs.core.errors import BadInput

LARGEST_BYTES: Final = 512 * 1024 * 1024
"""Of one file, as stored."""
LARGEST_PICTURE_BYTES: Final = 32 * 1024 * 1024


def read_regular(path: Path, max_bytes: int = LARGEST_BYTES) -> bytes:
    """The bytes of *path*. Raises BadInput for a link, anything that is no regular file, and a file over *max_bytes*;
    FileNotFoundError where there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = "it is a link, and links are not followed" if path.is_symlink() else error.strerror
        raise BadInput(f"{path}: cannot be read: {reason}") from None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise BadInput(f"{path}: cannot be read: it is no regular file")
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise BadInput(f"{path}: larger than {max_bytes // 2**20} MiB")
    return data


def read_text(path: Path) -> str:
    """The file as UTF-8, wrong bytes replaced. Raises as :func:`read_regular` does."""
    return read_regular(path).decode("utf-8", "replace")


def inside(folder: Path, path: Path) -> Path:
    """*path*, which must lie in *folder* when the links on its way are followed. Raises BadInput."""
    if not path.parent.resolve().is_relative_to(folder.resolve()):
        raise BadInput(f"{path}: its folder is a link that leads out of {folder}, and links are not followed")
    return path
