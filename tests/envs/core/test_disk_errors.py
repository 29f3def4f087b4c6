"""Refused writes: one error that names the file, and no partly written file."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from agent.results import EpisodeResult
from agent.run.run_store import RunFolder
from envs.core.atomic_write import write_atomically
from envs.core.blobs import BlobStore
from envs.core.disk_errors import disk_refusal, in_units, write_all, writing
from envs.core.errors import EnvError, NotWritten, ResetFailed
from envs.core.run_lock import RunLock
from envs.core.trace import Event
from envs.core.trace_store import TraceWriter, now
from tests.full_disk import small_disk
from training.data.cache import write_rows
from training.data.columns import Column
from training.data.rows import Row
from training.engine.checkpoints import write_folder_atomically
from training.serving.artifact import new_folder

BIG = "x" * 200_000


def event(detail: str) -> Event:
    return Event(step=1, name="note", detail=detail, at=now())


def whole_file(folder: Path) -> None:
    write_atomically(folder / "a.json", BIG)


def trace(folder: Path) -> None:
    with TraceWriter(folder / "episodes" / "e.jsonl", BlobStore(folder / "blobs")) as writer:
        writer.append(event(BIG))


def synced_trace(folder: Path) -> None:
    with TraceWriter(folder / "episodes" / "e.jsonl", BlobStore(folder / "blobs"), fsync=True) as writer:
        writer.append(event(BIG))


def blob(folder: Path) -> None:
    BlobStore(folder / "blobs").put_text(BIG)


def database(folder: Path) -> None:
    with writing(folder / "checkpoints.sqlite"), closing(sqlite3.connect(folder / "checkpoints.sqlite")) as opened:
        opened.execute("create table if not exists t (a text)")
        opened.execute("insert into t values (?)", (BIG,))
        opened.commit()


def weights(folder: Path) -> None:
    with write_folder_atomically(folder / "model") as part:
        save_file({"a": torch.zeros(50_000)}, part / "model.safetensors")


def torch_file(folder: Path) -> None:
    with write_folder_atomically(folder / "model") as part:
        torch.save({"a": torch.zeros(50_000)}, part / "optimizer.pt")


def table(folder: Path) -> None:
    chance = random.Random(0)
    tokens = tuple(chance.randrange(2**31) for _ in range(50_000))
    write_rows(folder / "rows.parquet", (Row(tokens, (1,), 0, 0),), {Column.ADVANTAGE: [1.0]})


def exported(folder: Path) -> None:
    with new_folder(folder / "export") as part:
        save_file({"a": torch.zeros(50_000)}, part / "model.safetensors")


WRITERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "whole file": (whole_file, "a.json"),
    "trace": (trace, "episodes/e.jsonl"),
    "trace, synced": (synced_trace, "episodes/e.jsonl"),
    "blob": (blob, "blobs/"),
    "database": (database, "checkpoints.sqlite"),
    "weights": (weights, "model"),
    "file of torch": (torch_file, "model"),
    "table": (table, "rows.parquet"),
    "export": (exported, "export"),
}


@contextmanager
def small_files(size: int) -> Generator[None]:
    """Files of this process end at *size* bytes: EFBIG, where a mount is not possible."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("free", [0, 4_096, 16_384, 65_536, 131_072])
@pytest.mark.parametrize("kind", WRITERS)
def test_a_full_disk_is_one_error_that_names_the_file(kind: str, free: int) -> None:
    write, name = WRITERS[kind]
    with small_disk(1 << 20) as disk:
        disk.leave(free)
        with pytest.raises(NotWritten) as refused:
            write(disk.path)
        message = str(refused.value)
        assert message.startswith(f"{disk.path}/{name}") and "\n" not in message
        assert "free)" in message and message.endswith("; make room, then continue with: the same command")
        left = [path.name for path in disk.path.rglob("*") if path.is_file()]
        assert not [name for name in left if "part" in name], "nothing half-written keeps its room"
        disk.resize(8 << 20)
        write(disk.path)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_that_must_not_grow_is_the_same_error(tmp_path: Path, kind: str) -> None:
    """The second method, which needs no root."""
    write, name = WRITERS[kind]
    with pytest.raises(NotWritten) as refused, small_files(20_000):
        write(tmp_path)
    assert str(refused.value).startswith(f"{tmp_path}/{name}")
    write(tmp_path)


def test_a_line_that_does_not_fit_leaves_no_part_of_it(tmp_path: Path) -> None:
    for fsync in (False, True):
        with small_disk(1 << 20) as disk:
            path = disk.path / "e.jsonl"
            with TraceWriter(path, BlobStore(disk.path / "blobs"), fsync=fsync) as writer:
                writer.append(event("kept"))
                before = path.read_bytes()
                disk.leave(0)
                with pytest.raises(NotWritten):
                    writer.append(event(BIG))
                assert path.read_bytes() == before
                disk.resize(1 << 20)
                writer.append(event("after"))
            kept, after = path.read_text().splitlines()
            assert f"{kept}\n".encode() == before and '"after"' in after


def test_a_lease_is_taken_on_a_full_disk() -> None:
    with small_disk(1 << 20) as disk:
        (disk.path / "lease").touch()
        disk.leave(0)
        with RunLock(disk.path):
            assert (disk.path / "lease").exists()


CAUSES = [
    pytest.param(OSError(errno.ENOSPC, "No space left on device"), True, id="full"),
    pytest.param(OSError(errno.EDQUOT, "Disk quota exceeded"), True, id="quota"),
    pytest.param(OSError(errno.EIO, "Input/output error"), True, id="failing"),
    pytest.param(OSError(errno.EROFS, "Read-only file system"), True, id="read-only"),
    pytest.param(OSError(errno.EACCES, "Permission denied"), False, id="forbidden"),
    pytest.param(ConnectionResetError(errno.ECONNRESET, "reset"), False, id="connection"),
    pytest.param(RuntimeError("the server says: No space left on device"), False, id="what a server says"),
    pytest.param(ValueError("x"), False, id="another"),
]


@pytest.mark.parametrize(("cause", "refused"), CAUSES)
def test_which_errors_are_the_disks(tmp_path: Path, cause: Exception, refused: bool) -> None:
    assert (disk_refusal(cause, tmp_path) is not None) is refused
    try:
        raise ResetFailed("the world did not start") from cause
    except EnvError as error:
        assert (disk_refusal(error, tmp_path) is not None) is refused
    group = ExceptionGroup("workers", [ValueError("y"), cause])
    assert (disk_refusal(group, tmp_path) is not None) is refused


def test_the_file_of_the_error_is_named(tmp_path: Path) -> None:
    error = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "there"))
    assert str(disk_refusal(error, tmp_path / "here")).startswith(str(tmp_path / "there"))


def test_a_row_of_results_that_does_not_fit_is_reported(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with pytest.raises(BrokenPipeError):
        write_all(write, b"x")
    os.close(write)
    run = RunFolder(tmp_path)
    result = EpisodeResult.model_construct(**{})
    with pytest.raises(NotWritten, match=r"results\.jsonl"), small_files(0):
        run.append_result(result)


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 bytes"), (999, "999 bytes"), (12_000, "12 KB"), (1_500_000, "1.5 MB"), (2**50, "1.13e+03 TB")],
)
def test_room_in_units(count: int, expected: str) -> None:
    assert in_units(count) == expected
