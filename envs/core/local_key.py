"""The key by which this machine recognises the runs that it wrote.

One random key for each user, in `$XDG_STATE_HOME/mira/run-key` (`~/.local/state/mira/run-key`), made on first use and
readable by its owner alone. A mark is an HMAC-SHA256 of what was written: whoever has not read the key cannot make one,
and a mark that was copied fits nothing else. Without the key file every earlier run counts as another person's.
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
    """Makes and checks marks. The key itself is never shown."""

    path: Path
    secret: bytes = field(repr=False)
    problem: str = ""
    """Why the key could not be kept, in one line: the next process then has another one. Empty where it was."""

    def mark(self, purpose: str, data: bytes) -> str:
        """64 hex digits. Marks of different *purpose* never fit each other."""
        return hmac.new(self.secret, purpose.encode() + b"\0" + data, hashlib.sha256).hexdigest()

    def fits(self, mark: str, purpose: str, data: bytes) -> bool:
        """Whether this key made *mark* for *purpose* and *data*."""
        return hmac.compare_digest(mark.encode(), self.mark(purpose, data).encode())


def local_key() -> LocalKey:
    """This user's key; it is made where there is none. Never raises: a key that cannot be kept lasts as long as this
    process, and says why in `problem`."""
    return _kept(_path())


def _path() -> Path:
    state = os.environ.get("XDG_STATE_HOME", "")
    if state and Path(state).is_absolute():
        return Path(state) / "mira" / KEY_NAME
    return Path(os.path.expanduser("~")) / ".local" / "state" / "mira" / KEY_NAME  # noqa: PTH111 - it never raises


@cache
def _kept(path: Path) -> LocalKey:
    try:
        return LocalKey(path, _read(path) or _made(path))
    except OSError as error:
        why = error.strerror or str(error)
        problem = (
            f"the key that marks runs as written here cannot be kept in {path} ({why}): "
            "runs of this process count as another person's from its end on"
        )
        return LocalKey(path, secrets.token_bytes(KEY_BYTES), problem)


def _read(path: Path) -> bytes | None:
    """The key in *path*; None where there is no file. Raises OSError for a file that others could have written or
    read."""
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


def _made(path: Path) -> bytes:
    """A new key in *path*, or the one that another process has just put there. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(part, path)  # whole or not at all, and never over a key that is there
    finally:
        part.unlink(missing_ok=True)
    secret = _read(path)
    if secret is None:
        raise FileNotFoundError(None, "it vanished while it was made")
    return secret
