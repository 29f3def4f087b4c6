"""Export folders: writes them atomically, with a manifest of file hashes, and verifies them."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from envs.core.disk_errors import disk_refusal, writing
from envs.core.errors import BadInput
from envs.core.record import Record

MANIFEST = "mira_export.json"

Kind = Literal["merged", "adapter"]
Dtype = Literal["float32", "float16", "bfloat16"]


class FileHash(Record):
    """One file of an export."""

    name: str
    """Relative to the folder."""
    size: int
    """Bytes."""
    sha256: str


class Manifest(Record):
    """Contents of `mira_export.json`, the manifest of an export folder."""

    version: Literal[1] = 1
    kind: Kind
    base: str
    """Absolute path of the checkpoint that was exported, or that the adapter belongs to."""
    adapter: str | None
    """Absolute path of the adapter that was merged or copied; None for a checkpoint without one."""
    dtype: Dtype
    """Type of the exported weights."""
    parameters: int
    """Number of exported parameters: of the model, or of the adapter."""
    context: int
    """Context length: tokens of prompt and answer together."""
    ends: tuple[int, ...]
    """Token ids that end an answer."""
    rank: int | None = None
    """Largest LoRA rank of an adapter; None for merged weights."""
    files: tuple[FileHash, ...]

    def serve_command(self, folder: Path) -> tuple[str, ...]:
        """Returns the command that serves this export as model `policy`."""
        from training.serving.adapters import server_rank

        if self.kind == "merged":
            return ("vllm", "serve", str(folder), "--served-model-name", "policy")
        rank = str(server_rank(self.rank or 1))
        return (
            "vllm",
            "serve",
            self.base,
            "--enable-lora",
            "--max-lora-rank",
            rank,
            "--lora-modules",
            f"policy={folder}",
        )


@contextmanager
def new_folder(out: Path) -> Generator[Path]:
    """Yields an empty folder that is renamed to *out* when the body succeeds, and deleted otherwise.

    Files are synced to disk before the rename. Raises BadInput if *out* already exists, since a server may be reading
    it, or cannot be written; NotWritten if the disk is full.
    """
    if out.exists():
        raise BadInput(f"{str(out)!r} exists already: an export never replaces one, choose another folder")
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        partial.mkdir(parents=True)
    except OSError as error:
        problem = BadInput(f"folder {str(out)!r} cannot be written: {error.strerror}")
        raise disk_refusal(error, out) or problem from None
    try:
        with writing(out):
            yield partial
            for path in _files(partial):
                path.chmod(
                    0o644
                )  # a server may run as another user; safetensors files are only readable by their owner
                _sync(path)
            _sync(partial)
            partial.rename(out)
            _sync(out.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def hash_files(folder: Path) -> tuple[FileHash, ...]:
    """Hashes every file of *folder* except for the manifest, sorted by name."""
    return tuple(
        FileHash(name=str(path.relative_to(folder)), size=path.stat().st_size, sha256=sha256_of(path))
        for path in _files(folder)
        if path.name != MANIFEST
    )


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> Manifest:
    """Reads and verifies the manifest of *folder*. Raises BadInput, in one line, if it is no export or was changed."""
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise BadInput(f"{str(folder)!r} is not an export (it holds no {MANIFEST})") from None
    except (OSError, ValidationError) as error:
        raise BadInput(f"{str(folder / MANIFEST)!r} cannot be read: {str(error).splitlines()[0]}") from None
    written, current = ({file.name: file for file in files} for files in (manifest.files, hash_files(folder)))
    for name in sorted(written.keys() | current.keys()):
        if written.get(name) != current.get(name):
            change = "is missing" if name not in current else "was added" if name not in written else "was changed"
            raise BadInput(f"{str(folder / name)!r} {change} since the export: export again")
    return manifest


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
