"""The local signing key, by which a machine recognises the runs that it wrote.

Each user has one random key in `$XDG_STATE_HOME/mira/run-key` (`~/.local/state/mira/run-key`). It is created on first
use and readable only by its owner. A mark is the HMAC-SHA256 of the written data: it cannot be made without the key and
is valid for no other data. Without the key file, all earlier runs count as foreign.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

KEY_NAME: Final = "run-key"
KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class LocalKey:
    """Creates and verifies marks. `repr` omits the key."""

    path: Path
    secret: bytes = field(repr=False)
    problem: str = ""
    """Why the key could not be stored, in one line; the next process then has another key. Empty if it was stored."""

    def mark(self, purpose: str, data: bytes) -> str:
        """Returns the mark of *data*: 64 hex digits. A mark is valid for its *purpose* only."""
        return hmac.new(self.secret, purpose.encode() + b"\0" + data, hashlib.sha256).hexdigest()

    def fits(self, mark: str, purpose: str, data: bytes) -> bool:
        """Whether *mark* is this key's mark of *data* for *purpose*."""
        return hmac.compare_digest(mark.encode(), self.mark(purpose, data).encode())


def local_key() -> LocalKey:
    """Returns this user's key and creates it if it is missing. Never raises: a key that cannot be stored is valid in
    this process only, and its `problem` says why."""
    return _kept(_path())


def _path() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    if state and Path(state).is_absolute():
        return Path(state) / "mira" / KEY_NAME
    return Path(os.path.expanduser("~")) / ".local" / "state" / "mira" / KEY_NAME  # noqa: PTH111 - it never raises


@cache
def _kept(path: Path) -> LocalKey:
    try:
        return LocalKey(path, _read(path) or _created(path))
    except OSError as error:
        why = error.strerror or str(error)
        problem = (
            f"the key that marks runs as written here cannot be kept in {path} ({why}): "
            "runs of this process count as another person's from its end on"
        )
        return LocalKey(path, secrets.token_bytes(KEY_BYTES), problem)


def _read(path: Path) -> bytes | None:
    """Returns the key in *path*, None if the file is missing. Raises OSError if other users can read or write it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
            raise PermissionError(None, "it must be a file of this user's with mode 0600")
        secret = os.read(handle, KEY_BYTES + 1)
    finally:
        os.close(handle)
    if len(secret) != KEY_BYTES:
        raise PermissionError(None, f"it does not hold {KEY_BYTES} bytes; remove it to get a new one")
    return secret


def _created(path: Path) -> bytes:
    """Creates a key in *path*, or returns the one that another process created meanwhile. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(part, path)  # atomic, and never replaces an existing key
    finally:
        part.unlink(missing_ok=True)
    secret = _read(path)
    if secret is None:
        raise FileNotFoundError(None, "it was removed while it was created")
    return secret
