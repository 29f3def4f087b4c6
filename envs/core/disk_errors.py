"""Detects write errors of the disk: full, over quota, failing or read-only.

Such an error is neither the policy's fault nor the user's. It ends a run without a footer, so the run can be resumed
once there is space.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from envs.core.errors import NotWritten

REFUSALS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
"""Error numbers of refused writes; EFBIG is the file size limit of the process."""
_SQLITE: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
_MESSAGES: Final = re.compile(
    r"No space left on device|Disk quota exceeded|File too large|Input/output error|Read-only file system"
    r"|\bE(?:NOSPC|DQUOT|FBIG|IO|ROFS)\b|PytorchStreamWriter failed|file write failed|unexpected pos \d+ vs \d+",
    re.IGNORECASE,
)
"""Texts of write errors in libraries with their own error types (safetensors, PyTorch, Arrow, Playwright)."""
_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")


@contextmanager
def writing(path: Path) -> Generator[None]:
    """Wraps code that writes *path*: turns a refused write into NotWritten, which names the file. Other errors pass."""
    try:
        yield
    except Exception as error:
        # Libraries report a full disk with many error types.
        why = None if isinstance(error, NotWritten) else _why(error) or _known_message(error)
        if why is None:
            raise
        raise not_written(_inside(error, path), why) from error


def disk_refusal(error: BaseException, path: Path) -> NotWritten | None:
    """Returns NotWritten if *error* or one of its causes is a refused write, else None. *path* is used if the error
    names no file. Error texts are ignored here, because a server may have written them."""
    if (existing := _existing(error)) is not None:
        return existing
    why = _why(error)
    return None if why is None else not_written(_named(error) or path, why)


def not_written(path: Path, why: str) -> NotWritten:
    """Builds the error for *path*. *why* is the system's message; the free space is added."""
    free = free_bytes(path)
    return NotWritten(path, why if free is None else f"{why} ({in_units(free)} free)")


def write_all(handle: int, data: bytes) -> None:
    """Writes all of *data*; os.write alone may write less when the disk fills up. Raises OSError."""
    while data:
        data = data[os.write(handle, data) :]


def free_bytes(path: Path) -> int | None:
    """Returns the free bytes on the disk of *path*, which need not exist; None if unknown."""
    for place in (path, *path.absolute().parents):
        try:
            return shutil.disk_usage(place).free
        except OSError:
            continue
    return None


def _existing(error: BaseException) -> NotWritten | None:
    return next((cause for cause in _chain(error) if isinstance(cause, NotWritten)), None)


def _named(error: BaseException) -> Path | None:
    names = (cause.filename for cause in _chain(error) if isinstance(cause, OSError))
    return next((Path(name) for name in names if isinstance(name, str) and name), None)


def _inside(error: BaseException, path: Path) -> Path:
    """Returns the file that *error* names if it is inside folder *path*; else *path*."""
    named = _named(error)
    return named if named is not None and path.is_dir() and named.is_relative_to(path) else path


def _why(error: BaseException) -> str | None:
    for cause in _chain(error):
        if isinstance(cause, OSError) and cause.errno in REFUSALS:
            return os.strerror(cause.errno)
        if isinstance(cause, sqlite3.Error) and getattr(cause, "sqlite_errorcode", 0) & 0xFF in _SQLITE:
            return str(cause)
    return None


def _known_message(error: BaseException) -> str | None:
    for cause in _chain(error):
        if match := _MESSAGES.search(str(cause)):
            return os.strerror(errno.ENOSPC) if "unexpected pos" in match[0] or "write" in match[0] else match[0]
    return None


def _chain(error: BaseException) -> Generator[BaseException]:
    """Yields *error*, the errors that it groups, and the causes of all of them."""
    left, seen = [error], set[int]()
    while left:
        current = left.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            left.extend(current.exceptions)
        left.extend(cause for cause in (current.__cause__, current.__context__) if cause is not None)


def in_units(count: int) -> str:
    """Formats a number of bytes for display, e.g. `12 KB`."""
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"
