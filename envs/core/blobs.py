"""Content-addressed storage beside the traces: blobs are named by SHA-256, which deduplicates repeated pages."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Collection
from pathlib import Path

from pydantic import JsonValue

from envs.core.disk_errors import writing
from envs.core.errors import TraceError
from envs.core.record import storable
from envs.security.secrets import NO_SECRETS, SecretVault

_NAME = re.compile(r"[0-9a-f]{64}")


class BlobStore:
    """Content-addressed files in one folder.

    A blob is complete or absent, even after SIGKILL; several processes may write the same blob. With *fsync* it also
    survives a power failure once `put` has returned. Text is masked before it is stored; `put` stores bytes unchanged
    (pictures, downloads).
    """

    def __init__(self, folder: Path, secrets: SecretVault = NO_SECRETS, *, fsync: bool = False) -> None:
        self.folder = folder
        self._secrets = secrets
        self._fsync = fsync
        self._known: set[str] = set()
        self._has_folder = False

    def put(self, data: bytes) -> str:
        """Stores *data* and returns its name, 64 hex digits. Raises NotWritten if the disk refuses the write."""
        name = hashlib.sha256(data).hexdigest()
        if name not in self._known:
            path = self.folder / name
            if not path.exists():
                with writing(path):
                    self._write(path, data)
            self._known.add(name)
        return name

    def put_text(self, text: str) -> str:
        """Stores *text* as UTF-8, with secrets masked and unstorable characters replaced."""
        return self.put(self._secrets.mask(storable(text)).encode())

    def put_json(self, value: JsonValue, unmasked: Collection[str] = ()) -> str:
        """Stores *value* as JSON, with secrets masked inside its strings, except for the values of the keys
        *unmasked*."""
        plain = json.dumps(self._masked(value, unmasked), ensure_ascii=False, separators=(",", ":"))
        return self.put(plain.encode())

    def read(self, name: str) -> bytes:
        """Returns the bytes of blob *name*. Raises TraceError if it is missing or damaged, or the name is invalid."""
        if _NAME.fullmatch(name) is None:
            raise TraceError(f"{name!r} is not a blob name (64 hex digits)")
        try:
            data = (self.folder / name).read_bytes()
        except FileNotFoundError:
            raise TraceError(f"blob {name} is missing in {self.folder}") from None
        if hashlib.sha256(data).hexdigest() != name:
            raise TraceError(f"blob {name} in {self.folder} is damaged: its content does not match its name")
        return data

    def text(self, name: str) -> str:
        """Returns the text of blob *name*. Raises TraceError as `read` does, and if the blob is not UTF-8."""
        try:
            return self.read(name).decode()
        except UnicodeDecodeError:
            raise TraceError(f"blob {name} in {self.folder} is not text") from None

    def _masked(self, value: JsonValue, unmasked: Collection[str]) -> JsonValue:
        match value:
            case str():
                return self._secrets.mask(storable(value))
            case list():
                return [self._masked(item, unmasked) for item in value]
            case dict():
                mask = self._secrets.mask
                return {
                    mask(storable(key)): item if key in unmasked else self._masked(item, unmasked)
                    for key, item in value.items()
                }
            case _:
                return value

    def _write(self, path: Path, data: bytes) -> None:
        if not self._has_folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._has_folder = True
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=".part-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                if self._fsync:
                    file.flush()
                    os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        if self._fsync:
            sync_folder(self.folder)


def sync_folder(folder: Path) -> None:
    """Syncs *folder*, so that the names of new files survive a power failure."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
