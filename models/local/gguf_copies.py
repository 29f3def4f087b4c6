"""Converts a GGUF file to a transformers checkpoint, once, and keeps it in a cache.

transformers takes half a minute to read a GGUF file of half a billion parameters, and some versions keep weights in
quantized blocks that every forward pass unpacks. A copy with plain weights loads in seconds. Quantized weights are
stored as bfloat16, which is much more precise than they are; others as float32.

    ~/.cache/mira/gguf/
    ├── NAME-DIGEST/        a copy, by the SHA-256 of the file: config.json, model.safetensors, tokenizer, source.json
    └── known/PATH.json     size, time and digest of a file, so that an unchanged one is not read again
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, redirect_stderr
from pathlib import Path
from typing import Any, Final

from models.base import ModelUnavailable
from models.local.gguf_header import GgufHeader, read_header
from models.local.safe_loading import LOCAL
from models.optional import install_command, missing_modules

SOURCE: Final = "source.json"
"""The file in a copy that names its source."""
SUFFIX: Final = ".gguf"
LISTED: Final = 8
"""Files of a folder that an error names."""

Log = Callable[[str], object]


def gguf_file(place: Path) -> Path | None:
    """The GGUF file *place*, or the only one in the folder *place* if that is no checkpoint; else None. Raises
    :class:`ModelUnavailable` if a folder has several."""
    if place.is_file():
        return place if place.suffix.lower() == SUFFIX else None
    if (place / "config.json").is_file():
        return None
    files = sorted(path for path in place.glob("*") if path.suffix.lower() == SUFFIX)
    if len(files) > 1:
        names = ", ".join(file.name for file in files[:LISTED])
        more = f" and {len(files) - LISTED} more" if len(files) > LISTED else ""
        raise ModelUnavailable(
            f"{str(place)!r} holds {len(files)} GGUF files, name one, as in local:{files[0]}: {names}{more}"
        )
    return files[0] if files else None


def gguf_cache() -> Path:
    """`$XDG_CACHE_HOME/mira/gguf`, by default below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "mira" / "gguf"


def is_quantized_copy(folder: Path) -> bool:
    """Whether *folder* is a copy of quantized weights, made by `converted`."""
    try:
        values: dict[str, Any] = json.loads((folder / SOURCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return values.get("dtype") == "bfloat16"


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def converted(file: Path, spec: str, log: Log = _log) -> Path:
    """The folder of *file*'s copy, which is made if it is missing; *log* gets a message with its size and place.

    Concurrent processes make it once. Raises :class:`ModelUnavailable`, in one line that begins with *spec*, if the
    package `gguf` or disk space is missing, or if transformers cannot read the file.
    """
    cache = gguf_cache()
    try:
        header = read_header(file)
        digest = _digest(file, cache)[:16]
        if (copy := next(cache.glob(f"*-{digest}"), None)) is not None:
            return copy
        folder = cache / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', file.stem)}-{digest}"
        _check(header, spec)
        with _lock(cache):
            if not folder.is_dir():
                _make(file, header, folder, spec, log)
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"{spec}: {' '.join(str(error).split())[:300]}") from error
    return folder


def _check(header: GgufHeader, spec: str) -> None:
    if missing_modules("gguf"):
        raise ModelUnavailable(f"{spec}: a GGUF file needs the package gguf: {install_command('gguf')}")
    if header.parts > 1:
        raise ModelUnavailable(
            f"{spec}: the model is split over {header.parts} GGUF files: join them with llama.cpp's gguf-split --merge"
        )


def _make(file: Path, header: GgufHeader, folder: Path, spec: str, log: Log) -> None:
    size = header.elements * (2 if header.quantized else 4)
    free = shutil.disk_usage(folder.parent).free
    if free < 1.05 * size:
        raise ModelUnavailable(
            f"{spec}: its copy takes {_amount(size)} and {str(folder.parent)!r} has {_amount(free)} left: make room, "
            "or set XDG_CACHE_HOME"
        )
    log(f"{spec}: converting {_amount(file.stat().st_size)} of GGUF once, {_amount(size)} stay in {folder}")
    started = time.monotonic()
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        _write(file, part, "bfloat16" if header.quantized else "float32")
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    log(f"{spec}: converted in {time.monotonic() - started:.0f} s; later runs read the copy")


def _write(file: Path, out: Path, dtype: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options: dict[str, Any] = {"gguf_file": file.name, **LOCAL}
    with nullcontext() if sys.stderr.isatty() else redirect_stderr(io.StringIO()):  # a progress bar is for terminals
        tokenizer: Any = AutoTokenizer.from_pretrained(file.parent, **options)
        model: Any = AutoModelForCausalLM.from_pretrained(
            file.parent, dtype=getattr(torch, dtype), attn_implementation="sdpa", **options, **_dequantized()
        )
        tokenizer.save_pretrained(out)
        model.save_pretrained(out)
    values = {"file": str(file.resolve()), "bytes": file.stat().st_size, "dtype": dtype}
    (out / SOURCE).write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def _dequantized() -> dict[str, Any]:
    """Options that make transformers dequantize weights; versions that always do have no such option."""
    try:
        from transformers import GgufConfig
    except ImportError:
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def _digest(file: Path, cache: Path) -> str:
    """SHA-256 of *file*, cached by its size and time."""
    stat = file.stat()
    now = {"bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    known = cache / "known" / f"{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]}.json"
    try:
        values: dict[str, Any] = json.loads(known.read_text(encoding="utf-8"))
        if {name: values[name] for name in now} == now:
            return str(values["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not cached, or an incomplete file
    with file.open("rb") as read:
        digest = hashlib.file_digest(read, "sha256").hexdigest()
    known.parent.mkdir(parents=True, exist_ok=True)
    unfinished = known.with_name(f"{known.name}.{os.getpid()}.part")
    unfinished.write_text(json.dumps({**now, "sha256": digest}), encoding="utf-8")
    unfinished.replace(known)
    return digest


@contextmanager
def _lock(cache: Path) -> Generator[None]:
    """Lets one process convert at a time, because a conversion needs as much memory as the model."""
    with (cache / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _amount(size: int) -> str:
    """`1.3 GB` or `491 MB`."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6))} MB"
