"""A disk that does not take what is written: full, over quota, failing or read-only.

That says nothing of the policy and nothing of the input. It ends a run without a footer, so that the run continues once
there is room.
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
"""Error numbers of writes; EFBIG is the limit of a process on the size of its files."""
_SQLITE: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
_SAID: Final = re.compile(
    r"No space left on device|Disk quota exceeded|File too large|Input/output error|Read-only file system"
    r"|\bE(?:NOSPC|DQUOT|FBIG|IO|ROFS)\b|PytorchStreamWriter failed|file write failed|unexpected pos \d+ vs \d+",
    re.IGNORECASE,
)
"""What libraries that write by themselves (safetensors, PyTorch, Arrow, Playwright) say of it in their own errors."""
_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")


@contextmanager
def writing(path: Path) -> Generator[None]:
    """Around whatever writes *path*. Raises NotWritten, which names it, where the disk did not take it; all other
    errors pass."""
    try:
        yield
    except Exception as error:
        # Libraries tell of a full disk by errors of every kind; those that do not are raised again.
        why = None if isinstance(error, NotWritten) else _why(error) or _said(error)
        if why is None:
            raise
        raise not_written(_inside(error, path), why) from error


def disk_refusal(error: BaseException, path: Path) -> NotWritten | None:
    """*error*, or what caused it, as NotWritten where the disk did not take what was written; else None. *path* is
    named where the error names no file. What an error merely says is not asked: it may be a server's text."""
    if (found := _found(error)) is not None:
        return found
    why = _why(error)
    return None if why is None else not_written(_named(error) or path, why)


def not_written(path: Path, why: str) -> NotWritten:
    """*why*: what the system says. Adds how much is free."""
    free = free_bytes(path)
    return NotWritten(path, why if free is None else f"{why} ({in_units(free)} free)")


def write_all(handle: int, data: bytes) -> None:
    """As os.write, which may write less where the disk fills. Raises OSError."""
    while data:
        data = data[os.write(handle, data) :]


def free_bytes(path: Path) -> int | None:
    """What is free where *path* is, or would be; None where nobody knows."""
    for place in (path, *path.absolute().parents):
        try:
            return shutil.disk_usage(place).free
        except OSError:
            continue
    return None


def _found(error: BaseException) -> NotWritten | None:
    return next((one for one in _chain(error) if isinstance(one, NotWritten)), None)


def _named(error: BaseException) -> Path | None:
    names = (one.filename for one in _chain(error) if isinstance(one, OSError))
    return next((Path(name) for name in names if isinstance(name, str) and name), None)


def _inside(error: BaseException, path: Path) -> Path:
    """The file that *error* names where *path* is its folder; else *path*, of which it may name a temporary part."""
    named = _named(error)
    return named if named is not None and path.is_dir() and named.is_relative_to(path) else path


def _why(error: BaseException) -> str | None:
    for one in _chain(error):
        if isinstance(one, OSError) and one.errno in REFUSALS:
            return os.strerror(one.errno)
        if isinstance(one, sqlite3.Error) and getattr(one, "sqlite_errorcode", 0) & 0xFF in _SQLITE:
            return str(one)
    return None


def _said(error: BaseException) -> str | None:
    for one in _chain(error):
        if match := _SAID.search(str(one)):
            return os.strerror(errno.ENOSPC) if "unexpected pos" in match[0] or "write" in match[0] else match[0]
    return None


def _chain(error: BaseException) -> Generator[BaseException]:
    """*error*, what it groups, and what caused them."""
    left, seen = [error], set[int]()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            left.extend(one.exceptions)
        left.extend(cause for cause in (one.__cause__, one.__context__) if cause is not None)


def in_units(count: int) -> str:
    """A number of bytes for people, such as 12 KB."""
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"
