"""Writes a trace: append-only, one write per line, secrets masked."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic_core import PydanticSerializationError

from envs.core.blobs import BlobStore, sync_folder
from envs.core.disk_errors import REFUSALS, not_written, write_all, writing
from envs.core.errors import TraceError
from envs.core.masked_values import masked_values
from envs.core.record import storable
from envs.core.trace import Event, Line
from envs.core.trace_chain import last_value, linked_line
from envs.security.secrets import NO_SECRETS, SecretVault


class TraceWriter:
    """Appends records to one episode's file.

    Guarantees: when `append` has returned, the line survives SIGKILL of this process and, with *fsync*, a power
    failure. No declared secret reaches the disk. Opening a file with a torn last line, even if only the line break is
    missing, drops that line and records an event. Every line continues the hash chain; with *own* it has this machine's
    mark. Only one writer may open a file: hold the run lock.
    """

    def __init__(
        self,
        path: Path,
        blobs: BlobStore,
        secrets: SecretVault = NO_SECRETS,
        *,
        fsync: bool = False,
        own: bool = True,
    ) -> None:
        self.path = path
        self.blobs = blobs
        self._secrets = secrets
        self._fsync = fsync
        self._own = own
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if fsync:
                sync_folder(path.parent)
            dropped = _repair(self._handle)
        self._chain = last_value(path)
        if dropped and os.fstat(self._handle).st_size > 0:
            detail = f"{dropped} bytes of an unfinished last line were dropped"
            self.append(Event(step=0, name="torn_line", detail=detail, at=now()))

    def mask(self, text: str) -> str:
        """Returns *text* as it would be stored. Also used for prompts, checkpoints and displays."""
        return self._secrets.mask(storable(text))

    def append(self, record: Line) -> None:
        """Writes one line completely or not at all. Raises NotWritten if the disk refuses it, TraceError if the writer
        is closed."""
        if self._handle < 0:
            raise TraceError(f"{self.path}: the writer is closed")
        linked, chain = linked_line(self._chain, self._line(record).encode(), own=self._own)
        self._append(linked + b"\n")
        self._chain = chain

    def _append(self, line: bytes) -> None:
        """Removes a line that was written partly or not synced: its action is not executed, so no reader may see it."""
        before = os.fstat(self._handle).st_size
        try:
            write_all(self._handle, line)
            if self._fsync:
                os.fsync(self._handle)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._handle, before)
            if error.errno in REFUSALS:
                raise not_written(self.path, error.strerror or str(error)) from error
            raise TraceError(f"{self.path}: cannot write: {error.strerror}") from error

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _line(self, record: Line) -> str:
        if not self._secrets:
            try:
                return record.model_dump_json()
            except PydanticSerializationError:
                pass  # a lone surrogate was not replaced earlier: the slow path below does it
        return json.dumps(masked_values(record, self.mask), ensure_ascii=False, separators=(",", ":"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def now() -> str:
    """Returns the UTC time in milliseconds as ISO 8601, the format of the `at` fields."""
    return datetime.now(UTC).isoformat("T", "milliseconds")


def _repair(handle: int) -> int:
    """Removes a torn last line and returns its length in bytes.

    A line without its line break also counts as torn: readers ignore it, and its `append` did not return, so no action
    was executed because of it.
    """
    size = os.fstat(handle).st_size
    if size == 0:
        return 0
    tail = _tail(handle, size)
    if not tail:
        return 0
    os.ftruncate(handle, size - len(tail))
    return len(tail)


def _tail(handle: int, size: int) -> bytes:
    """Returns the bytes after the last line break."""
    tail, start = b"", size
    while start > 0:
        step = min(65_536, start)
        start -= step
        block = os.pread(handle, step, start)
        cut = block.rfind(b"\n")
        if cut >= 0:
            return block[cut + 1 :] + tail
        tail = block + tail
    return tail
